// `cellkit call CELL`: a request, a method call or a WebSocket to one cell, as its peers make them.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import type { CellAddress } from "@cellkit/peer";
import { z } from "zod";
import { bucketOptions } from "../bucket-options.ts";
import { parseCell } from "../cell-name.ts";
import { withShortFlags } from "../short-flags.ts";

const cellSchema = z.string().transform((text, context): CellAddress => {
  const cell = parseCell(text);
  if (cell !== undefined) return cell;
  context.addIssue({
    code: "custom",
    message: "must be CLASS:NAME, or CLASS:ID with an id of 64 hex digits",
  });
  return z.NEVER;
});

const urlSchema = z.string().transform((text, context): URL => {
  const url = URL.parse(text, "http://cell");
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  context.addIssue({ code: "custom", message: "must be a path, or an http:// or https:// URL" });
  return z.NEVER;
});

/** The command's options. */
export const callOptions = z
  .strictObject({
    cell: cellSchema.meta({
      description: "The cell: its class, and its name or its id of 64 hex digits.",
      placeholder: "CLASS:NAME",
      positional: true,
    }),
    url: urlSchema.prefault("/").meta({
      description: "What the cell sees as the request's URL: a path under http://cell, or a whole URL.",
      placeholder: "PATH",
      positional: true,
    }),
    ...bucketOptions,
    request: z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}$/, "must be an HTTP method")
      .optional()
      .meta({
        description: "-X: the method.",
        placeholder: "METHOD",
        defaultText: "GET, or POST with --data",
      }),
    header: z.array(z.string().max(16_384)).max(200).default([]).meta({
      description: "-H: a header of the request.",
      placeholder: "NAME: VALUE",
      defaultText: "none",
    }),
    data: z.string().optional().meta({
      description:
        "-d: the body: a text, @FILE, or @- for standard input, which is streamed. With --rpc a JSON list.",
      placeholder: "DATA",
    }),
    include: z
      .boolean()
      .default(false)
      .meta({ description: "-i: print status and headers before the body." }),
    fail: z.boolean().default(false).meta({ description: "-f: end with 3 when the status is 400 or above." }),
    rpc: z.string().min(1).max(255).optional().meta({
      description: "Call this method with the arguments in --data, and print what it returns as JSON.",
      placeholder: "METHOD",
    }),
    ws: z.boolean().default(false).meta({
      description: "Open a WebSocket: lines of standard input are sent as messages, messages are printed.",
    }),
    waitMs: z.number().int().min(0).max(86_400_000).default(1_000).meta({
      description: "With --ws: how long to listen after standard input has ended.",
    }),
    script: z.string().min(1).max(255).optional().meta({
      description: "Name of the script whose cell it is.",
      defaultText: "the fleet's deployment",
    }),
    records: z.enum(["off", "offered", "required"]).default("offered").meta({
      description:
        "Encryption on the way to the node. off: none; a node that requires it refuses. offered: required of nodes whose record advertises it. required: of all.",
    }),
    keyFile: z.string().optional().meta({
      description: "A file with the fleet's key, in place of the bucket's.",
      placeholder: "FILE",
    }),
    maxTimeMs: z.number().int().min(1).max(86_400_000).optional().meta({
      description:
        "How long it may take in all. When it is over, the last line says whether the call may have run.",
      defaultText: "no limit",
    }),
  })
  .superRefine(({ ws, rpc, data }, context) => {
    if (!ws) return;
    for (const [path, given] of Object.entries({ rpc, data }))
      if (given !== undefined)
        context.addIssue({
          code: "custom",
          path: [path],
          message: "does not go with --ws, which sends the lines of standard input",
        });
  });

const command = defineCommand<typeof callOptions, CommandContext>({
  description:
    "Calls a cell through any live node of the fleet, signed with the fleet's key as nodes call each other: whoever can read the bucket can call every cell. A call is made again only when it is proven that nothing ran.",
  schema: callOptions,
  exitCodes: {
    0: "answered; with --ws: closed by this side, or with code 1000 or 1005",
    1: "failure: no node, a lost connection, a method that threw; standard error says why and whether it may have run",
    2: "bad flags or environment, a file that cannot be read, a class that the deployment does not have",
    3: "--fail and a status of 400 or above; --ws and another close code, or no WebSocket",
    130: "ended by a signal",
  },
  examples: [
    { command: "cellkit call Room:lobby /rooms/lobby", description: "GET, the body on standard output" },
    {
      command:
        "cellkit call Room:lobby '/rooms/lobby/messages?id=6f1c0f7e-8a4b-4c61-9d0e-2b8a5f3d7c10' -H 'content-type: text/plain' -d hello",
      description: "POST",
    },
    {
      command: "cellkit call Counter:one --rpc add -d '[2]'",
      description: "A method, of a Worker with a class Counter",
    },
    { command: "cellkit call Room:lobby /rooms/lobby/socket --ws", description: "A WebSocket, until Ctrl-D" },
  ],
  async run(config, { defer, note, print, signal: ended }) {
    const { openBucket } = await import("@cellkit/bucket");
    const { requireFleetKeys } = await import("@cellkit/peer");
    const { callCell, converse, openClient, openData, parseHeaders, writeAnswer } = await import(
      "../cell-call.ts"
    );
    const { absentClass, checkRefusal, explained } = await import("../call-failure.ts");
    const { CallInputError } = await import("../errors.ts");
    const { readKeyFile } = await import("../peer-options.ts");
    const { cell, endpoint, keyFile, maxTimeMs, records, region, rpc, script } = config;
    const headers = parseHeaders(config.header);
    const store = openBucket(config.bucket, { region, endpoint });
    defer("the bucket", () => store.close());
    const over = maxTimeMs === undefined ? undefined : AbortSignal.timeout(maxTimeMs);
    const signal = over === undefined ? ended : AbortSignal.any([ended, over]);
    // What explains a failure is read when the time may be over already.
    const facts = { store, className: cell.className, script, signal: ended };
    let unsent = true;
    try {
      const key =
        keyFile === undefined
          ? (await requireFleetKeys(store, { signal })).keys[0]
          : await readKeyFile(keyFile);
      const body = config.ws ? undefined : await openData(config.data, process.stdin);
      unsent = false;
      const target = { store, cell, key, script, records, signal };
      if (rpc !== undefined) {
        const { parseArguments } = await import("../rpc-arguments.ts");
        const args = await parseArguments(body);
        const client = await openClient(target);
        try {
          print(JSON.stringify((await client.rpc(cell, { method: rpc, args }, { signal })) ?? null));
        } finally {
          await client.close();
        }
        return 0;
      }
      const method = config.request ?? (config.data === undefined ? "GET" : "POST");
      const call = { url: config.url, method, headers, data: config.data };
      if (config.ws) {
        const talk = { input: process.stdin, print, note, waitMs: config.waitMs };
        const code = await converse(target, call, talk);
        // Below 1000 it is the status of an answer that was no WebSocket.
        const reason = code === 400 || code === 503 ? await absentClass(facts) : undefined;
        if (reason !== undefined) throw new CallInputError(reason);
        return ended.aborted || code === 1000 || code === 1005 ? 0 : 3;
      }
      const response = await callCell(target, call, body);
      await checkRefusal(response, facts);
      await writeAnswer(response, config.include, process.stdout);
      return config.fail && response.status >= 400 ? 3 : 0;
    } catch (error) {
      const overMs = over?.aborted === true && !ended.aborted ? maxTimeMs : undefined;
      throw await explained(error, facts, { overMs, unsent });
    }
  },
});

/** The command, with the short flags that people know from curl. */
export const call = withShortFlags(command, {
  "-X": "--request",
  "-H": "--header",
  "-d": "--data",
  "-i": "--include",
  "-f": "--fail",
});
