/** Whether a file is a whole export, before anything of it is used. */
import { LedgerExportError } from "../errors.ts";
import type { LedgerCallOptions } from "../ledger.ts";
import { BindingsDigest } from "./bindings-digest.ts";
import { type ExportHead, readExport } from "./export-file.ts";
import { KeySet } from "./key-set.ts";

/** What a whole file says. */
interface CheckedExport {
  head: ExportHead;
  recordCount: number;
  /** Of its bindings, in whatever order. */
  bindingsDigest: string;
  /** Of its bytes, as its last line has it. */
  fileDigest: string;
}

/**
 * Reads a file to its end. Holds 40 to 80 bytes for each of its records.
 * @throws LedgerExportError (CELLKIT_LEDGER_EXPORT) when it is not whole, has what no ledger could keep, or names a key twice
 */
export async function checkExport(
  bytes: AsyncIterable<Uint8Array>,
  options: LedgerCallOptions = {},
): Promise<CheckedExport> {
  const digest = new BindingsDigest();
  const keys = new KeySet();
  let head: ExportHead | undefined;
  let fileDigest = "";
  for await (const line of readExport(bytes, options)) {
    if ("head" in line) head = line.head;
    else if ("end" in line) fileDigest = line.end.digest;
    else {
      const { key, owner } = line.record;
      if (!keys.add(key)) throw new LedgerExportError(`it has the key ${key} twice`);
      digest.add(key, owner);
    }
  }
  if (head === undefined) throw new LedgerExportError("it is empty");
  return { head, recordCount: keys.size, bindingsDigest: `${digest}`, fileDigest };
}
