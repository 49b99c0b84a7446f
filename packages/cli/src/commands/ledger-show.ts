// `cellkit ledger show URL ID`: whom an id belongs to.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { ledgerPlaceOptions, ledgerUrl, readPlace } from "../ledger-options.ts";
import { jsonLine, printable } from "../printable.ts";

/** The command's options. */
export const ledgerShowOptions = z
  .strictObject({
    url: ledgerUrl,
    id: z.string().min(1).max(4_096).optional().meta({
      description: "The id. It is hashed here and sent nowhere.",
      placeholder: "ID",
      positional: true,
    }),
    key: z
      .string()
      .regex(/^[0-9a-f]{64}$/, "must be 64 lowercase hex digits, as `cellkit ledger ls` shows them")
      .optional()
      .meta({ description: "The id's hash, in place of the id.", placeholder: "HEX" }),
    json: z.boolean().default(false).meta({
      description: "Print one JSON object: key, backend, bodyHash, modifiedMs, marked, problem.",
    }),
    ...ledgerPlaceOptions,
  })
  .superRefine(({ id, key }, context) => {
    if (id === undefined && key === undefined)
      context.addIssue({ code: "custom", path: ["id"], message: "give the id, or --key HEX" });
    if (id !== undefined && key !== undefined)
      context.addIssue({
        code: "custom",
        path: ["key"],
        message: "is in place of the id: give one of the two",
      });
  });

/** The command. */
export const ledgerShow = defineCommand<typeof ledgerShowOptions, CommandContext>({
  description:
    "Shows the record of one id: its owner, the hash of the body that claimed it, and when. Takes no lock and writes nothing; a copy and a read-only mount will do, and so will a directory of the original router.",
  schema: ledgerShowOptions,
  exitCodes: {
    0: "there is a record, and it was shown",
    1: "failure: no ledger there, it cannot be read, or the record is corrupt; standard error says why",
    2: "bad flags or environment",
    3: "nobody ever claimed this id",
    130: "ended by a signal",
  },
  examples: [
    { command: "cellkit ledger show /var/lib/router/ownership run-42", description: "By its id" },
    {
      command: `cellkit ledger show postgres://router@db/ledger --key ${"6437b3ac38465133".padEnd(64, "0")}`,
      description: "By the hash that `ls` shows",
    },
  ],
  async run(config, { defer, note, print, signal }) {
    const { loadDigest } = await import("@cellkit/ledger");
    const ledger = await readPlace(config);
    defer("the ledger", () => ledger.close());
    const key = config.key ?? (await loadDigest()).key(config.id ?? "");
    const entry = await ledger.entry(key, { signal });
    if (entry === undefined) {
      note(`nobody ever claimed ${config.id === undefined ? key : `this id (${key})`} in ${ledger.url}`);
      return 3;
    }
    const { owner, modifiedMs, marked, problem } = entry;
    if (config.json) print(jsonLine({ key, ...owner, modifiedMs, marked, problem }));
    else {
      print(`key       ${key}`);
      if (owner !== undefined) {
        print(`owner     ${printable(owner.backend)}`);
        print(`body      ${printable(owner.bodyHash)}`);
      }
      print(`modified  ${new Date(modifiedMs).toISOString()}`);
      if (marked) print("marked    it waits for a sweep");
    }
    if (owner !== undefined) return 0;
    note(
      `the record cannot be used: ${printable(problem ?? "it cannot be read")}; restore it (docs/move-a-ledger.md, "Restore a record")`,
    );
    return 1;
  },
});
