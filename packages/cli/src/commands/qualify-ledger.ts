// `cellkit qualify ledger URL`: whether a place keeps what a ledger promises, tried out with processes that race and die.
import { once } from "node:events";
import { addressOption, type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { directoryOf, ledgerUrl } from "../ledger-options.ts";
import { jsonLine, printable } from "../printable.ts";
import { ledgerAgentCommand, readAgentSecret, storeFlags } from "../qualify-ledger-parts.ts";

/** The command's options. */
export const qualifyLedgerOptions = z
  .strictObject({
    url: ledgerUrl,
    peer: z.array(addressOption()).max(15).default([]).meta({
      description:
        "Another machine that takes part: the address of a `cellkit qualify ledger URL --agent --listen` there, with its own path to the same ledger. May be given several times.",
      placeholder: "HOST:PORT",
      defaultText: "none",
    }),
    secretFile: z.string().optional().meta({
      description:
        "A file with a secret of at least 32 characters, the same on all machines; for --peer and --listen. `openssl rand -hex 32` makes one.",
      placeholder: "FILE",
    }),
    processes: z.number().int().min(2).max(16).default(3).meta({
      description: "Processes on this machine; half as many on each other one.",
      placeholder: "COUNT",
    }),
    fillMib: z.number().int().min(1).max(1_048_576).optional().meta({
      description:
        "Also fill the disk of a directory, if no more than this is free on it (in MiB), for a moment and for everybody who uses it; 16 for a test volume.",
      placeholder: "MIB",
      defaultText: "a full disk is not tested",
    }),
    agent: z.boolean().default(false).meta({
      description:
        "Be one of the processes, for the qualification that a program (on standard input and output) or another machine (with --listen) runs.",
    }),
    listen: addressOption().optional().meta({
      description:
        "With --agent: where to wait for qualifications of other machines. Connections prove that they know the secret and are not encrypted; the agents do nothing but work in a probe beside the ledger.",
      placeholder: "HOST:PORT",
    }),
    json: z.boolean().default(false).meta({
      description:
        "Print what was found as one JSON object: url, verdict (qualified, violated, unknown), checks (name, result: passed, failed, not-tested, detail, ms, required), advice.",
    }),
    ...storeFlags,
  })
  .superRefine(({ peer, secretFile, agent, listen }, context) => {
    const needs = (path: string, message: string): void =>
      context.addIssue({ code: "custom", path: [path], message });
    if (listen !== undefined && !agent) needs("listen", "is for --agent");
    if (peer.length > 0 && agent) needs("peer", "is not for --agent: the one that qualifies names its peers");
    if ((peer.length > 0 || listen !== undefined) && secretFile === undefined)
      needs("secretFile", "is needed with --peer and --listen");
  });

/** The command. */
export const qualifyLedgerCommand = defineCommand<typeof qualifyLedgerOptions, CommandContext>({
  description:
    "Finds out whether a directory, a bucket or a database may hold a ledger, with several processes: claims that race, processes that are killed, restarted and frozen in the middle of claims; in a directory also its lock, links, renames, fsync, and what other processes see at once. It works in a probe of its own beside the ledger (cellkit-qualify-…), and removes it; one that a kill -9 left may be removed by hand. A directory must be there: none is made. Memory file systems are refused. What cannot be tested is told, too: no program can cut its own power.",
  schema: qualifyLedgerOptions,
  exitCodes: {
    0: "qualified: everything that the verdict rests on passed; with --agent: it ended",
    1: "not qualified: something failed; or standard output could not be written",
    2: "could not tell: no such directory, something that the verdict rests on could not be tested, a peer or the store cannot be reached; or bad flags",
    130: "ended by a signal; the probe is removed",
  },
  examples: [
    { command: "cellkit qualify ledger /mnt/shared/ownership", description: "From one machine; some 15 s" },
    {
      command: "cellkit qualify ledger /mnt/shared/ownership --agent --listen 10.0.0.12:7070 --secret-file s",
      description: "On a second machine, then on the first one:",
    },
    {
      command: "cellkit qualify ledger /mnt/shared/ownership --peer 10.0.0.12:7070 --secret-file s",
      description: "Both machines together",
    },
  ],
  async run(config, context) {
    if (config.agent) return beAgent(config, context);
    const { note, print, signal } = context;
    const { localPlace, peerPlace, qualifyLedger } = await import("@cellkit/ledger");
    try {
      const here = localPlace(ledgerAgentCommand(config));
      const secret = config.secretFile === undefined ? "" : await readAgentSecret(config.secretFile);
      const peers = config.peer.map((address) => peerPlace({ ...address, secret }));
      const isTerminal = process.stderr.isTTY === true;
      await introduce(config, note, isTerminal);
      const found = await qualifyLedger(config.url, {
        places: [here, ...peers],
        agentCount: config.processes,
        bucket: { endpoint: config.endpoint, region: config.region },
        fillBytes: config.fillMib === undefined ? undefined : config.fillMib * 1_048_576,
        signal,
        onBegin: (name) => {
          if (isTerminal && config.json) note(name);
        },
        onCheck: ({ name, result, detail, required }) => {
          if (!config.json)
            print(
              `${result.padEnd(10)}  ${name.padEnd(22)}  ${printable(detail)}${required ? "" : " [informational]"}`,
            );
        },
      });
      if (config.json) print(jsonLine(found));
      else {
        for (const sentence of found.advice) print(printable(sentence));
        const words = { qualified: "qualified", violated: "NOT qualified", unknown: "could not tell" };
        print(`${words[found.verdict]}: ${found.url}`);
      }
      return { qualified: 0, violated: 1, unknown: 2 }[found.verdict];
    } catch (error) {
      if (signal.aborted) {
        note("cellkit qualify ledger: ended before it could tell; its probe is removed");
        throw error;
      }
      const message = printable(error instanceof Error ? error.message : String(error));
      if (config.json) print(JSON.stringify({ verdict: "unknown", checks: [], advice: [message] }));
      note(`cellkit qualify ledger: ${message}`);
      return 2;
    }
  },
});

/** Says what is going to be tried. The processes take some seconds to start. */
async function introduce(
  { url, json }: z.output<typeof qualifyLedgerOptions>,
  note: CommandContext["note"],
  isTerminal: boolean,
): Promise<void> {
  const { describeDirectory } = await import("@cellkit/ledger");
  const directory = await directoryOf({ url, name: "executions" });
  const place = directory === undefined ? undefined : await describeDirectory(directory);
  if (isTerminal && !json)
    note(`${place === undefined ? "" : `${directory} is on ${place.fileSystem.name}; `}starting processes …`);
  if (place !== undefined && place.userId !== 0 && process.getuid?.() === 0)
    note(
      `this is root, and the directory belongs to the user ${place.userId}: what that user may do shows only with sudo -u '#${place.userId}' before this command`,
    );
}

/** One process of a qualification, or the keeper of those that other machines ask for. */
async function beAgent(
  config: z.output<typeof qualifyLedgerOptions>,
  { defer, note, signal }: CommandContext,
): Promise<number> {
  const { listenForAgents, serveAgent } = await import("@cellkit/ledger");
  if (config.listen === undefined) {
    const bucket = { endpoint: config.endpoint, region: config.region };
    await serveAgent(config.url, { input: process.stdin, output: process.stdout, bucket });
    return 0;
  }
  const agent = ledgerAgentCommand(config);
  const { listen } = config;
  const listener = await readAgentSecret(config.secretFile ?? "")
    .then((secret) => listenForAgents({ ...listen, secret, agent, onEvent: (line) => note(printable(line)) }))
    .catch((error: unknown) => {
      note(`cellkit qualify ledger: ${printable(error instanceof Error ? error.message : String(error))}`);
      return undefined;
    });
  if (listener === undefined) return 2;
  defer("the agent", () => listener.close());
  note(
    `an agent for qualifications of a ledger at ${listener.host}:${listener.port}: whoever knows the secret makes its processes claim, lock, die and freeze in a probe beside the ledger, and nothing else; stop with Ctrl-C`,
  );
  if (!signal.aborted) await once(signal, "abort");
  return 0;
}
