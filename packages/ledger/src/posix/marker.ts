/** The file that says that a ledger was created here, and which: an empty directory in its place has none. */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { z } from "zod";
import { LedgerUnsupportedError } from "../errors.ts";
import { errnoOf, quietly } from "./disk-failure.ts";
import type { FileCalls } from "./file-calls.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";
import type { Staging } from "./staging.ts";

const LIMIT_BYTES = 1_024;

const Marker = z.strictObject({ format: z.literal(1), ledgerId: z.uuid() });

/**
 * The ledger's id; undefined if there is no marker. Rejects with the system's error for everything else.
 * @throws LedgerUnsupportedError when the file is no marker that this version knows
 */
export async function readMarker(place: {
  url: string;
  markerPath: string;
  calls: FileCalls;
}): Promise<string | undefined> {
  const { calls, markerPath, url } = place;
  if ((await calls.lstat(markerPath)) === undefined) return undefined;
  const fd = await calls.open(markerPath, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const bytes = Buffer.alloc(LIMIT_BYTES);
    const text = bytes.toString("utf8", 0, await calls.read(fd, bytes));
    const parsed = Marker.safeParse(parseJson(text));
    if (!parsed.success)
      throw new LedgerUnsupportedError(
        url,
        `${markerPath} is not the mark of a ledger that this version knows. If a newer cellkit made it, use that one; if it is damaged, restore it from a backup, or stop all routers, move it away and run cellkit ledger adopt, which leaves a new one`,
        { cause: parsed.error },
      );
    return parsed.data.ledgerId;
  } finally {
    await quietly(calls.close(fd));
  }
}

/** The ledger's id, from the marker or a new one. Under the lock. */
export async function ensureMarker(directory: LedgerDirectory, staging: Staging): Promise<string> {
  const there = await readMarker(directory);
  if (there !== undefined) return there;
  const ledgerId = randomUUID();
  const [staged] = await staging.write([JSON.stringify({ format: 1, ledgerId })]);
  if (staged === undefined || "error" in staged) throw staged?.error;
  try {
    await directory.calls.link(staged.path, directory.markerPath);
    await directory.sync();
    return ledgerId;
  } catch (error) {
    const found = errnoOf(error) === "EEXIST" ? await readMarker(directory) : undefined;
    if (found === undefined) throw error;
    return found;
  } finally {
    await staging.discard(staged.path);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
