// `cellkit router check`: what can be learnt of a router's configuration without starting it.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { routerOptions } from "@cellkit/router";
import { z } from "zod";

/** What the command has beside the router's own options. */
export const routerCheckOwnOptions = z.strictObject({
  rounds: z.number().int().min(1).max(100).default(5).meta({
    description:
      "How often each backend is asked, over fresh connections. A balancer is found when two answers come from different nodes.",
    section: "Check",
  }),
  json: z.boolean().default(false).meta({
    description: "Print what was found as one JSON object: verdict, checks (name, verdict, detail).",
    section: "Check",
  }),
});

/** The command's options. */
export const routerCheckOptions = routerOptions.safeExtend(routerCheckOwnOptions.shape);

/** The command. */
export const routerCheck = defineCommand<typeof routerCheckOptions, CommandContext>({
  description:
    "Takes the flags and the environment of cellkit-router, and tells whether a router could start with them and serve well: tokens that are different, a ledger that is there, owners that are still in the list, replicas with the same list and tokens, and backends that are one node each. Each backend is asked several times over fresh connections: answers from different nodes behind one origin are refused. Changes nothing.",
  schema: routerCheckOptions,
  envPrefix: "CELLKIT_ROUTER_",
  exitCodes: {
    0: "nothing failed; warnings may be there",
    1: "something failed",
    2: "bad flags or environment",
    130: "ended by a signal",
  },
  examples: [
    {
      command:
        "cellkit router check --backends http://dispatcher-a:8787,http://dispatcher-b:8787 --token-file b --client-token-file c --ownership-dir /var/lib/celln/ownership",
      description: "With the flags that the router will have",
    },
  ],
  async run({ rounds, json, ...config }, { print, signal }) {
    const { checkRouter } = await import("@cellkit/router");
    const checks = await checkRouter(config, {
      roundCount: rounds,
      signal,
      onResult: ({ name, verdict, detail }) => {
        if (!json) print(`${verdict.padEnd(10)}  ${name}: ${detail}`);
      },
    });
    const isFailed = checks.some(({ verdict }) => verdict === "failed");
    if (json) print(JSON.stringify({ verdict: isFailed ? "failed" : "passed", checks }));
    return isFailed ? 1 : 0;
  },
});
