// `cellkit qualify executions`: the acceptance list of a plane, tried on the plane.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { cellkitVersion } from "../cellkit-version.ts";
import { HookError, QualificationInputError } from "../errors.ts";
import type { HookFn, HookName } from "../qualify-executions/plane.ts";
import { accessProblem, checkAccessFiles, type RouterAccess, routerAccessOptions } from "../router-access.ts";

const file = (description: string) => z.string().min(1).meta({ description, placeholder: "FILE" });
const hook = (description: string) =>
  z.string().min(1).optional().meta({ description, placeholder: "COMMAND", section: "Commands of yours" });
const milliseconds = (description: string) => z.number().int().min(1).max(3_600_000).meta({ description });

const qualifyExecutionsShape = z.strictObject({
  router: z
    .string()
    .regex(/^https?:\/\/[^\s?#]+$/, "must be http(s)://HOST[:PORT]")
    .meta({
      description: "The router as callers reach it: what stands before all replicas.",
      placeholder: "URL",
    }),
  clientTokenFile: file("The client token; read for each call."),
  ...routerAccessOptions,
  allowInsecureHttp: z.boolean().default(false).meta({
    description: "Allow http: to a router on another machine: token and work travel readable.",
  }),
  backend: z
    .array(z.string().regex(/^http:\/\/[^\s/?#]+\/?$/, "must be http://HOST[:PORT]"))
    .min(2, "at least two are needed")
    .max(32)
    .meta({
      description:
        "A dispatcher, as the routers' list has it. Give each; may be given several times. The commands are done to the first.",
      placeholder: "URL",
    }),
  tokenFile: file("The backend token, by which dispatchers are asked what they have; read for each look."),
  capabilityTokenFile: file("").optional().meta({
    description: "The discovery token, to see that --rotate replaces it, too.",
    placeholder: "FILE",
    defaultText: "its rotation is not shown",
  }),
  request: file("An execution request, JSON, that ends well by itself and soon. Its id is replaced."),
  longRequest: file("").optional().meta({
    description: "An execution request that goes on for a minute at least, until it is ended.",
    placeholder: "FILE",
    defaultText: "timeout, cancellation and node-loss are not shown",
  }),
  out: file(
    "Where the evidence is written, as JSON; must not be there yet. Until all is done it is FILE.partial, with what was found so far.",
  ),
  digest: z
    .array(z.string().regex(/^[\w.-]{1,64}=sha256:[0-9a-f]{64}$/, "must be NAME=sha256:HEX"))
    .max(64)
    .default([])
    .meta({
      description:
        "The digest of an image or program, to be kept in the evidence; nobody checks it. May be given several times.",
      placeholder: "NAME=sha256:HEX",
      defaultText: "none",
    }),
  killReplica: hook("Kills a replica of the router, another one stays."),
  startReplica: hook("Starts it again, and waits until it serves."),
  killNode: hook("Kills the dispatcher CELLKIT_QUALIFY_BACKEND with its node."),
  startNode: hook("Starts it again."),
  loseAnswers: hook(
    "From now on this dispatcher gets what is sent to it, and no answer comes back: it is stopped by SIGSTOP, or the network drops what it sends.",
  ),
  restoreAnswers: hook("Answers come back."),
  rotate: hook(
    "Rotates the tokens, `cellkit rotate …`; the files given here have the new ones when it ends.",
  ),
  upgrade: hook("Upgrades routers and dispatchers."),
  rollback: hook("Goes back to the version before."),
  settleMs: milliseconds("How long the plane may take to be well after a command.").default(120_000),
  ambiguousMs: milliseconds(
    "How long a submission is tried whose answers are lost. Routers wait for 10 s.",
  ).default(15_000),
  shortTimeoutMs: milliseconds("What the long request is allowed where it is to run out of time.").default(
    5_000,
  ),
});

/** The command's options. */
export const qualifyExecutionsOptions = qualifyExecutionsShape.superRefine((config, context) => {
  const problem = accessProblem(config);
  if (problem !== undefined)
    context.addIssue({ code: "custom", path: [problem.path], message: problem.message });
});

const hookNames = {
  "kill-replica": "killReplica",
  "start-replica": "startReplica",
  "kill-node": "killNode",
  "start-node": "startNode",
  "lose-answers": "loseAnswers",
  "restore-answers": "restoreAnswers",
  rotate: "rotate",
  upgrade: "upgrade",
  rollback: "rollback",
} as const satisfies Record<HookName, keyof z.output<typeof qualifyExecutionsOptions>>;

/** The command. */
export const qualifyExecutionsCommand = defineCommand<typeof qualifyExecutionsOptions, CommandContext>({
  description:
    "Submits executions to a deployed plane, and looks past the routers at its dispatchers: two nodes, submission and repeat, timeout, cancellation, ambiguous acceptance, loss of a replica and of a node, rotation, upgrade, rollback. What has to be killed, cut and started is done by commands of yours; what no command was given for is told as not shown. Runs real work: choose requests without effects. The evidence has times, versions, digests, every execution, and what was not shown.",
  schema: qualifyExecutionsOptions,
  exitCodes: {
    0: "every check passed",
    1: "something failed",
    2: "bad flags or environment, a file that cannot be read, a request that is none, TLS that cannot come about, evidence that is there already",
    3: "nothing failed, and not everything was shown",
    130: "ended by a signal; commands that restore the plane are still run, and told of where they fail, and FILE.partial has what was found",
  },
  examples: [
    {
      command:
        "cellkit qualify executions --router https://router:9444 --client-token-file c --backend http://dispatcher-a:8787 --backend http://dispatcher-b:8787 --token-file b --request hello.json --out evidence.json",
      description: "What can be shown without killing anything",
    },
  ],
  async run(config, { defer, note, print, signal }) {
    const { RouterClient } = await import("@cellkit/execution");
    const { EvidenceFile } = await import("../qualify-executions/evidence-file.ts");
    const { beyondReach } = await import("../qualify-executions/evidence.ts");
    const { checkTls } = await import("../router-probe.ts");
    const { qualifyExecutions } = await import("../qualify-executions/qualify-executions.ts");
    const { router, clientTokenFile, allowInsecureHttp, settleMs, ambiguousMs, shortTimeoutMs } = config;
    const access: RouterAccess = {
      caFile: config.caFile,
      clientCertFile: config.clientCert,
      clientKeyFile: config.clientKey,
    };
    await checkAccessFiles(access);
    const request = await readRequest(config.request);
    const longRequest = config.longRequest === undefined ? undefined : await readRequest(config.longRequest);
    const client = new RouterClient({
      url: router,
      tokenFile: clientTokenFile,
      allowInsecureHttp,
      ...access,
    });
    await checkTls(router, { ...access, signal });
    const out = await EvidenceFile.create(config.out);
    defer("the evidence", async () => {
      await out.close();
      if (out.partialPath !== undefined) note(`what was found until then is in ${out.partialPath}`);
    });
    const evidence = await qualifyExecutions(
      {
        client,
        router: { ...access, url: router, tokenFile: clientTokenFile },
        backends: config.backend.map((url) => url.replace(/\/$/, "")),
        backendTokenFile: config.tokenFile,
        capabilityTokenFile: config.capabilityTokenFile,
        request: request.value,
        longRequest: longRequest?.value,
        hooks: hooksOf(config, note),
        commands: commandsOf(config),
        settleMs,
        ambiguousMs,
        shortTimeoutMs,
        signal,
        onNote: note,
      },
      {
        tool: { cellkit: cellkitVersion(), node: process.version },
        router,
        digests: Object.fromEntries(config.digest.map((text) => text.split("=", 2) as [string, string])),
        templates: {
          request: request.sha256,
          ...(longRequest === undefined ? {} : { longRequest: longRequest.sha256 }),
        },
      },
      async ({ name, result, detail }, found) => {
        print(`${result.padEnd(9)}  ${name.padEnd(20)}  ${detail}`);
        await out.keep(found);
      },
    );
    await out.finish(evidence);
    const told = evidence.checks.map(({ name, detail }) => `${name}: ${detail}`);
    for (const line of evidence.notShown)
      if (!told.includes(line) && !beyondReach.includes(line)) note(`not shown: ${line}`);
    note(`${beyondReach.length} things that no run of this command shows are in the evidence, as notShown`);
    print(`${evidence.verdict}: ${config.out}`);
    return { shown: 0, failed: 1, incomplete: 3 }[evidence.verdict];
  },
});

async function readRequest(path: string) {
  const { executionRequestSchema, JsonError, parseJson } = await import("@cellkit/execution");
  try {
    const bytes = await readFile(path);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const parsed = executionRequestSchema.safeParse(parseJson(bytes.toString()));
    if (parsed.success) return { value: parsed.data, sha256 };
    throw new QualificationInputError(`${path} is no execution request: ${z.prettifyError(parsed.error)}`);
  } catch (cause) {
    if (cause instanceof QualificationInputError) throw cause;
    const why =
      cause instanceof JsonError ? cause.message : ((cause as NodeJS.ErrnoException).code ?? "unknown");
    throw new QualificationInputError(`${path} cannot be read: ${why}`, { cause });
  }
}

function commandsOf(config: z.output<typeof qualifyExecutionsOptions>): Partial<Record<HookName, string>> {
  const commands: Partial<Record<HookName, string>> = {};
  for (const [name, option] of Object.entries(hookNames) as [HookName, (typeof hookNames)[HookName]][]) {
    const command = config[option];
    if (command !== undefined) commands[name] = command;
  }
  return commands;
}

/** Commands run to their end, also when this one is told to stop: what was killed has to come back. */
function hooksOf(
  config: z.output<typeof qualifyExecutionsOptions>,
  note: (line: string) => void,
): Partial<Record<HookName, HookFn>> {
  const hooks: Partial<Record<HookName, HookFn>> = {};
  for (const [name, command] of Object.entries(commandsOf(config)) as [HookName, string][])
    hooks[name] = async (backend) => {
      note(`running the command of --${name}`);
      const child = spawn("/bin/sh", ["-c", command], {
        env: { ...process.env, CELLKIT_QUALIFY_STEP: name, CELLKIT_QUALIFY_BACKEND: backend },
        stdio: ["ignore", 2, 2],
        // A Ctrl-C at the terminal is for this command alone.
        detached: true,
      });
      const [code, killedBy] = (await once(child, "close")) as [number | null, string | null];
      if (code !== 0) throw new HookError(name, killedBy ?? `code ${code}`);
    };
  return hooks;
}
