// `cellkit rotate`: the three tokens of a plane, in their order.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { StepCommandError } from "../errors.ts";
import type { RotationStep } from "../rotation-steps.ts";
import { accessProblem, routerAccessOptions } from "../router-access.ts";

const origins = z
  .array(z.string().regex(/^https?:\/\/[^\s/?#]+\/?$/, "must be http://HOST[:PORT]"))
  .min(1, "at least one is needed")
  .max(100);
const tokenFile = (description: string) => z.string().min(1).meta({ description, placeholder: "FILE" });

/** The command's options. */
export const rotateOptions = z
  .strictObject({
    router: origins.meta({
      description:
        "A replica of the router, by an address of its own and not by a Service's. Give each; may be given several times.",
      placeholder: "URL",
    }),
    backend: origins.meta({
      description: "A dispatcher. Give each; may be given several times.",
      placeholder: "URL",
    }),
    clientTokenFile: tokenFile("The client token as it is."),
    newClientTokenFile: tokenFile("The client token that takes its place.").optional(),
    tokenFile: tokenFile("The backend token as it is."),
    newTokenFile: tokenFile("The backend token that takes its place.").optional(),
    capabilityTokenFile: tokenFile("The discovery token as it is.").optional(),
    newCapabilityTokenFile: tokenFile("The discovery token that takes its place.").optional(),
    overlap: z.boolean().default(false).meta({
      description:
        "The routers take two tokens of callers for a while (--next-client-token-file): they accept the new one first, and refuse the old one once the callers have changed. Needs --step-command.",
    }),
    stepCommand: z.string().min(1).optional().meta({
      description:
        "A shell command that does a step: it gets CELLKIT_ROTATE_STEP and CELLKIT_ROTATE_TOKEN_FILE, and ends with 0 when the step is done. Without it the step is told, and the walk waits until it sees it done.",
      placeholder: "COMMAND",
    }),
    stepTimeoutMs: z.number().int().min(0).max(86_400_000).default(600_000).meta({
      description:
        "How long a step may take to be seen everywhere. Secrets of Kubernetes reach a pod a minute or two after they change.",
    }),
    ...routerAccessOptions,
    allowInsecureHttp: z.boolean().default(false).meta({
      description: "Allow http: to routers on other machines: the tokens travel readable.",
    }),
  })
  .superRefine((config, context) => {
    const { newClientTokenFile, newTokenFile, newCapabilityTokenFile, capabilityTokenFile } = config;
    const needs = (path: string, message: string): void =>
      context.addIssue({ code: "custom", path: [path], message });
    if ([newClientTokenFile, newTokenFile, newCapabilityTokenFile].every((file) => file === undefined))
      needs(
        "newClientTokenFile",
        "at least one new token is needed: it, --new-token-file or --new-capability-token-file",
      );
    if (newCapabilityTokenFile !== undefined && capabilityTokenFile === undefined)
      needs("capabilityTokenFile", "is needed with --new-capability-token-file");
    const access = accessProblem(config);
    if (access !== undefined) needs(access.path, access.message);
    if (config.overlap && config.stepCommand === undefined)
      needs("stepCommand", "is needed with --overlap: nobody else can say when the callers have changed");
    if (!config.allowInsecureHttp)
      for (const url of config.router)
        if (!/^https:|^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|$)/.test(url))
          needs(
            "router",
            `${url} is http: on another machine, so that the tokens travel readable; allow it by --allow-insecure-http`,
          );
    for (const url of config.backend)
      if (url.startsWith("https:")) needs("backend", `${url}: dispatchers are reached over http:`);
  });

/** The command. */
export const rotate = defineCommand<typeof rotateOptions, CommandContext>({
  description:
    "Walks the documented order: the backend token on dispatchers and routers together, the client token on routers and then on the controller, the discovery token on routers and then on the API server. Each step is seen from outside before the next one begins: the new token is accepted everywhere, the old one refused, and each router hears from every dispatcher that was given, and from no other. What is already so is left, so that the same command goes on where a walk was broken off. Without --overlap there is a gap in which callers are refused. Whether the controller and the API server use the new token cannot be seen from outside.",
  schema: rotateOptions,
  exitCodes: {
    0: "every step was done; the lines say which were seen and which were only said",
    1: "failure: the step's command failed; standard error says why",
    2: "bad flags or environment, a file that cannot be read, or tokens that cannot take each other's place",
    3: "a place does not follow, or a router has dispatchers that were not given",
    130: "ended by a signal; the same command goes on",
  },
  examples: [
    {
      command:
        "cellkit rotate --router http://127.0.0.1:8787 --backend http://dispatcher-a:8787 --client-token-file c --token-file b --new-token-file b2 --step-command ./put-token",
      description: "The backend token, which ./put-token brings to its places",
    },
  ],
  async run(config, { note, print, signal }) {
    const { rotateTokens } = await import("../rotate-tokens.ts");
    const { stepCommand, capabilityTokenFile, caFile, overlap, stepTimeoutMs } = config;
    const reports = await rotateTokens(
      {
        routers: config.router,
        dispatchers: [...new Set(config.backend.map((url) => url.replace(/\/$/, "")))],
        client: { current: config.clientTokenFile, next: config.newClientTokenFile },
        backend: { current: config.tokenFile, next: config.newTokenFile },
        capability:
          capabilityTokenFile === undefined
            ? undefined
            : { current: capabilityTokenFile, next: config.newCapabilityTokenFile },
      },
      {
        caFile,
        clientCertFile: config.clientCert,
        clientKeyFile: config.clientKey,
        overlap,
        stepTimeoutMs,
        signal,
        onProgress: note,
        ...(stepCommand === undefined
          ? {}
          : { perform: (step, file) => performStep(stepCommand, { step, file, signal }) }),
      },
    );
    for (const { step, evidence } of reports) print(`${evidence.padEnd(6)}  ${step}`);
    return 0;
  },
});

/** Its standard output goes to standard error, which is for people. */
async function performStep(
  command: string,
  { step, file, signal }: { step: RotationStep; file: string; signal: AbortSignal },
): Promise<void> {
  const child = spawn("/bin/sh", ["-c", command], {
    env: { ...process.env, CELLKIT_ROTATE_STEP: step, CELLKIT_ROTATE_TOKEN_FILE: file },
    stdio: ["ignore", 2, 2],
    signal,
  });
  const [code, killedBy] = (await once(child, "close")) as [number | null, string | null];
  if (code !== 0) throw new StepCommandError(step, killedBy ?? `code ${code}`);
}
