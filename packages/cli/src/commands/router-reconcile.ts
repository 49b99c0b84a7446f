// `cellkit router reconcile FILE`: where runs are, by the ledger and their owners.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { routerOptions } from "@cellkit/router";
import { z } from "zod";
import { IdFileError } from "../errors.ts";
import { plural } from "../plural.ts";

/** What the command has beside the router's own options. */
export const routerReconcileOwnOptions = z.strictObject({
  ids: z.string().min(1).meta({
    description: "A file with the ids of runs, one a line; - is standard input.",
    placeholder: "FILE",
    positional: true,
    section: "Report",
  }),
  everywhere: z.boolean().default(false).meta({
    description:
      "Ask all dispatchers for each id, and not only its owner: finds what runs beside its owner, or twice.",
    section: "Report",
  }),
  all: z.boolean().default(false).meta({
    description: "Show settled runs, too: those with a final record, and unclaimed ones.",
    section: "Report",
  }),
  json: z.boolean().default(false).meta({
    description:
      "Print a JSON object a line: id, state, owner, phase, detail of each run; then runCount, states, otherRecords, unreadableCount.",
    section: "Report",
  }),
});

/** The command's options. */
export const routerReconcileOptions = routerOptions.safeExtend(routerReconcileOwnOptions.shape);

/** The command. */
export const routerReconcile = defineCommand<typeof routerReconcileOptions, CommandContext>({
  description:
    "Looks ids up in the ledger, asks each one's owner for its record, and tells what is outstanding: active, interrupted, lost, removed, unrecorded, misplaced, twice, unknown. An id without an owner is asked of all dispatchers, so that runs from before the ledger are found. The ids have to come from whoever submitted them: a ledger keeps hashes, and a dispatcher lists nothing. Where the name of dispatchers cannot be looked up, nothing is told at all: a run that nobody was asked for is not unclaimed. Records of ids that were not given are counted. Only reads: nothing is claimed, cancelled or submitted. Takes the flags and the environment of cellkit-router.",
  schema: routerReconcileOptions,
  envPrefix: "CELLKIT_ROUTER_",
  exitCodes: {
    0: "every run is final or unclaimed",
    1: "some are outstanding, the ledger or a record in it cannot be read, a line is no id, or which dispatchers there are is not known; standard error says so",
    2: "bad flags or environment, a file that cannot be read, or no ids in it",
    130: "ended by a signal",
  },
  examples: [
    {
      command:
        "kubectl get agentruns -A -o json | jq -r '.items[].metadata | .name + \"-\" + .uid' | cellkit router reconcile - --backends http://dispatcher-a:8787 --token-file b --client-token-file c --ownership-dir /var/lib/celln/ownership",
      description: "Before an old router is retired: all runs of a controller",
    },
  ],
  async run({ ids, everywhere, all, json, ...config }, { defer, note, print, signal }) {
    const router = await import("@cellkit/router");
    const { backend: token } = router.credentialsOf(config, () => undefined).load();
    // What a part of them does not have, another one may: then nothing can be told as unclaimed.
    const origins = await router.listBackends(config);
    const ledger = await router.openRouterLedgerReader(config);
    defer("the ledger", () => ledger.close());
    let openCount = 0;
    let invalidCount = 0;
    const summary = await router.reconcileRuns(
      linesOf(ids),
      { ledger, origins, token },
      {
        everywhere,
        signal,
        onRun(run) {
          const isSettled = router.isSettled(run);
          if (run.state === "invalid") invalidCount += 1;
          else if (!isSettled) openCount += 1;
          if (isSettled && !all) return;
          const { id, state, phase, detail } = run;
          print(
            json
              ? JSON.stringify(run)
              : `${state.padEnd(11)}  ${id}  ${phase === undefined ? "" : `${phase}, `}${detail}`,
          );
        },
      },
    );
    const { runCount, otherRecords, unreadableCount } = summary;
    if (json) print(JSON.stringify({ ...summary, otherRecords: Object.fromEntries(otherRecords) }));
    note(`${openCount} of ${runCount - invalidCount} runs are outstanding`);
    if (invalidCount > 0)
      note(
        `${plural(invalidCount, "line is", "lines are")} no id that a router takes: look where they come from`,
      );
    for (const [owner, count] of otherRecords)
      note(
        `${plural(count, "further record belongs", "further records belong")} to ${owner}: no id for ${count === 1 ? "it" : "them"} was given, and nobody can tell one`,
      );
    if (unreadableCount > 0)
      note(
        `${plural(unreadableCount, "entry is no readable record", "entries are no readable records")}, so that what is told as unclaimed may have an owner: \`cellkit ledger verify\` names ${unreadableCount === 1 ? "it" : "them"}`,
      );
    return openCount + invalidCount + unreadableCount > 0 ? 1 : 0;
  },
});

/** The lines that are not empty. @throws IdFileError (`CELLKIT_CLI_ID_FILE`), also where there is none */
async function* linesOf(path: string): AsyncIterable<string> {
  const input = path === "-" ? process.stdin : createReadStream(path);
  const failed = new Promise<never>((_resolve, reject) => input.once("error", reject));
  failed.catch(() => undefined);
  let isEmpty = true;
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await Promise.race([lines.next(), failed]);
      if (done === true) break;
      if (value.trim() === "") continue;
      isEmpty = false;
      yield value.trim();
    }
  } catch (cause) {
    throw new IdFileError(path, (cause as NodeJS.ErrnoException).code ?? "unknown", { cause });
  }
  // What makes the ids may have failed: then nothing is known of any.
  if (isEmpty) throw new IdFileError(path, "there is none: look at what was to give them");
}
