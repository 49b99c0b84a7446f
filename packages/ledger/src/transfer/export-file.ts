/**
 * The file that a ledger travels in: a JSON value a line.
 *
 *     {"format":"cellkit-ledger-export","version":1,"ledger":"executions","ledgerId":"…"}
 *     {"key":"<64 hex>","backend":"http://…","body_hash":"blake3:…"}        one for each record, in no order
 *     {"count":2,"digest":"sha256:<64 hex>"}                               over every byte before this line
 *
 * The last line is how a file that was cut, or added to, is told from a whole one.
 */
import { createHash, type Hash } from "node:crypto";
import { z } from "zod";
import { originProblem } from "../core/origin.ts";
import { formatRecord, MAX_RECORD_BYTES, parseMembers } from "../core/record.ts";
import { LedgerExportError } from "../errors.ts";
import type { LedgerCallOptions, Owner } from "../ledger.ts";

/** A record's line has its own bytes, its key, and what JSON adds. */
const MAX_LINE_BYTES = MAX_RECORD_BYTES + 1_024;

const headSchema = z.strictObject({
  format: z.literal("cellkit-ledger-export"),
  version: z.literal(1),
  ledger: z.string().max(64),
  ledgerId: z.string().max(64),
});
const recordSchema = z.strictObject({
  key: z.string().regex(/^[0-9a-f]{64}$/),
  backend: z.string(),
  body_hash: z.string(),
});
const endSchema = z.strictObject({
  count: z.number().int().min(0),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
});

/** Which ledger a file was made from. */
export interface ExportHead {
  /** The ledger's name. */
  ledger: string;
  /** Empty for a directory of the original router, which has none. */
  ledgerId: string;
}

/** One binding of a file. */
export interface ExportRecord {
  key: string;
  owner: Owner;
}

/** What a file says of itself in its last line. */
interface ExportEnd {
  recordCount: number;
  /** `sha256:` and 64 lowercase hex digits. */
  digest: string;
}

/** Why a binding cannot travel, since not every store could keep it; words that go behind "its". */
export function bindingProblem(owner: Owner): string | undefined {
  const { backend, bodyHash } = owner;
  const problem = originProblem(backend);
  if (problem !== undefined) return `backend is ${problem}`;
  if (bodyHash === "") return "body hash is empty";
  if (/[\p{Cc}\p{Cs}]/u.test(bodyHash)) return "body hash has characters that no hash has";
  return Buffer.byteLength(formatRecord(owner)) > MAX_RECORD_BYTES
    ? `record would have more than ${MAX_RECORD_BYTES} bytes`
    : undefined;
}

/** Makes the lines of a file, in their order. */
export class ExportWriter {
  readonly #hash: Hash = createHash("sha256");
  #count = 0;

  head({ ledger, ledgerId }: ExportHead): string {
    return this.#line({ format: "cellkit-ledger-export", version: 1, ledger, ledgerId });
  }

  record({ key, owner }: ExportRecord): string {
    this.#count += 1;
    return this.#line({ key, backend: owner.backend, body_hash: owner.bodyHash });
  }

  end(): string {
    return `${JSON.stringify({ count: this.#count, digest: `sha256:${this.#hash.digest("hex")}` })}\n`;
  }

  #line(value: unknown): string {
    const line = `${JSON.stringify(value)}\n`;
    this.#hash.update(line);
    return line;
  }
}

/**
 * Reads a file: first its head, then its records, and at the end whether it is whole. What was yielded before an error is
 * not to be trusted: read once for the check alone, then again.
 * @throws LedgerExportError (CELLKIT_LEDGER_EXPORT), and the reason of the signal, which is looked at for each piece
 */
export async function* readExport(
  bytes: AsyncIterable<Uint8Array>,
  { signal }: LedgerCallOptions = {},
): AsyncGenerator<{ head: ExportHead } | { record: ExportRecord } | { end: ExportEnd }, void> {
  const hash = createHash("sha256");
  let number = 0;
  let count = 0;
  let ended = false;
  for await (const line of splitLines(bytes, signal)) {
    number += 1;
    if (ended) throw new LedgerExportError(`line ${number} comes after its last one`);
    const value = jsonOf(line, number);
    if (number === 1) {
      const head = headSchema.safeParse(value);
      if (!head.success) throw new LedgerExportError("its first line is not that of such a file");
      yield { head: { ledger: head.data.ledger, ledgerId: head.data.ledgerId } };
    } else {
      const end = endSchema.safeParse(value);
      if (end.success) {
        if (end.data.count !== count)
          throw new LedgerExportError(`it has ${count} records, and its last line says ${end.data.count}`);
        if (end.data.digest !== `sha256:${hash.digest("hex")}`)
          throw new LedgerExportError("its bytes are not those that its last line vouches for");
        ended = true;
        yield { end: { recordCount: count, digest: end.data.digest } };
        continue;
      }
      const record = recordSchema.safeParse(value);
      if (!record.success) throw new LedgerExportError(`line ${number} is no record`);
      count += 1;
      const { key, backend, body_hash: bodyHash } = record.data;
      const owner = { backend, bodyHash };
      const problem = bindingProblem(owner);
      if (problem !== undefined)
        throw new LedgerExportError(`line ${number} is no record that a ledger could keep: its ${problem}`);
      yield { record: { key, owner } };
    }
    hash.update(line).update("\n");
  }
  if (!ended) throw new LedgerExportError("it was cut off: its last line is missing");
}

/** All lines are flat. A member that is there twice would be read in two ways. */
function jsonOf(line: Uint8Array, number: number): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line);
  } catch (cause) {
    throw new LedgerExportError(`line ${number} is no JSON: it is not UTF-8`, { cause });
  }
  const members = parseMembers(text);
  if (members === undefined)
    throw new LedgerExportError(`line ${number} is no JSON object of texts and whole numbers`);
  const value = Object.fromEntries(members);
  if (Object.keys(value).length !== members.length)
    throw new LedgerExportError(`line ${number} has the same member twice`);
  return value;
}

/** Lines without their line break; the last one must have one, too. */
async function* splitLines(
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void> {
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of bytes) {
    signal?.throwIfAborted();
    let text = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = text.indexOf(0x0a); end >= 0; end = text.indexOf(0x0a)) {
      yield text.subarray(0, end);
      text = text.subarray(end + 1);
    }
    if (text.length > MAX_LINE_BYTES)
      throw new LedgerExportError("it has a line that is longer than any record");
    rest = text;
  }
  if (rest.length > 0) throw new LedgerExportError("it was cut off in the middle of a line");
}
