/** An export that becomes a file only when it is whole. */
import { randomUUID } from "node:crypto";
import { link, open, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { LedgerCallOptions, LedgerReader } from "../ledger.ts";
import { type ExportSummary, exportLedger } from "./transfer.ts";

/** Written in pieces of about this size: a record has some 200 bytes. */
const PIECE_BYTES = 65_536;

/**
 * Writes an export to a file that is not there yet: first beside it, durably, then under its name. Mode 0600.
 * @throws the system's error, EEXIST when the file is there, and what `exportLedger` throws; then no file is left
 */
export async function exportToFile(
  ledger: LedgerReader,
  path: string,
  options: LedgerCallOptions = {},
): Promise<ExportSummary> {
  const staging = `${path}.part-${randomUUID()}`;
  const file = await open(staging, "wx", 0o600);
  try {
    const lines = exportLedger(ledger, options);
    let piece = "";
    for (;;) {
      const next = await lines.next();
      if (next.done !== true) piece += next.value;
      if (next.done === true || piece.length >= PIECE_BYTES) {
        // Not `write`, which may write less than it was given when the disk or a limit runs out.
        await file.writeFile(piece);
        piece = "";
      }
      if (next.done !== true) continue;
      await file.sync();
      await link(staging, path);
      await syncDirectory(dirname(resolve(path)));
      return next.value;
    }
  } finally {
    await file.close();
    await rm(staging, { force: true });
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
