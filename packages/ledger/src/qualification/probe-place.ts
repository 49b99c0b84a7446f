/** Where a qualification works: a place of its own beside the live ledger, whose records it never touches. */
import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { LedgerUnavailableError } from "../errors.ts";
import { type OpenLedgerOptions, openLedger, parseLedgerUrl } from "../open-ledger.ts";
import { isProbe } from "./agent-protocol.ts";

/** Where a ledger in PostgreSQL lies unless it is told another table. */
const TABLE = "cellkit_ledger";

/** Objects that are deleted at a time. */
const DELETE_COUNT = 32;

/** The name of a probe that nobody has used yet. */
export function newProbe(): string {
  return `cellkit-qualify-${randomBytes(6).toString("hex")}`;
}

/** Opens the ledger of a probe. */
export function openProbeLedger(
  url: string,
  probe: string,
  options: Pick<OpenLedgerOptions, "bucket" | "requireExisting">,
): ReturnType<typeof openLedger> {
  const location = parseLedgerUrl(url);
  // In a directory the probe is a directory, so that all of it can be removed; elsewhere it is the ledger's name.
  return location.kind === "posix"
    ? openLedger(`${probeDirectory(location.directory, probe)}/ledger`, options)
    : openLedger(url, { ...options, name: probe });
}

/** The directory of a probe: below that of the live ledger, so that it is on the same file system. */
export function probeDirectory(directory: string, probe: string): string {
  return `${directory}/${probe}`;
}

/** Probes that are in a directory already: of a qualification that is under way, or that was killed. */
export async function otherProbes(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(() => [])).filter(isProbe);
}

/** @throws LedgerUnavailableError: one that were made in its place would be on whatever disk is underneath */
async function requireDirectory(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw new LedgerUnavailableError(path, error.message, "no", { cause: error });
  });
  if (found?.isDirectory() === true) return;
  throw new LedgerUnavailableError(
    path,
    `${found === undefined ? "there is no such directory" : "it is no directory"}, and a qualification makes none: mount what is missing, or make it`,
    "no",
  );
}

/** Makes a probe's directories. Answers how to remove everything that the probe has left, whatever the store. */
export async function makeProbe(
  url: string,
  probe: string,
  options: Pick<OpenLedgerOptions, "bucket">,
): Promise<() => Promise<void>> {
  const location = parseLedgerUrl(url);
  switch (location.kind) {
    case "posix": {
      const directory = probeDirectory(location.directory, probe);
      await requireDirectory(location.directory);
      try {
        await mkdir(directory, { mode: 0o700 });
        await mkdir(`${directory}/files`);
        await mkdir(`${directory}/ledger`);
      } catch (cause) {
        const problem = `no directory can be made there: ${(cause as Error).message}`;
        throw new LedgerUnavailableError(location.directory, problem, "no", { cause });
      }
      return async () => {
        await rm(directory, { recursive: true, force: true, maxRetries: 3 });
        await syncDirectory(location.directory);
      };
    }
    case "bucket":
      await makeLedger(url, probe, options);
      return async () => {
        const { openBucket } = await import("@cellkit/bucket");
        const bucket = openBucket(location.url, options.bucket);
        try {
          const keys: string[] = [];
          for await (const { key } of bucket.list(`ledger/${probe}/`)) keys.push(key);
          while (keys.length > 0)
            await Promise.all(keys.splice(0, DELETE_COUNT).map((key) => bucket.delete(key)));
        } finally {
          await bucket.close();
        }
      };
    case "postgres":
      await makeLedger(url, probe, options);
      return async () => {
        const { default: pg } = await import("pg");
        const client = new pg.Client({ connectionString: location.connection });
        await client.connect();
        try {
          await client.query(`DELETE FROM ${TABLE} WHERE ledger = $1`, [probe]);
        } finally {
          await client.end();
        }
      };
  }
}

/** Makes the ledger that all agents will open; a store that cannot be reached shows here. */
async function makeLedger(
  url: string,
  probe: string,
  options: Pick<OpenLedgerOptions, "bucket">,
): Promise<void> {
  const ledger = await openProbeLedger(url, probe, options);
  await ledger.close();
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync().catch(() => undefined);
  } finally {
    await directory.close();
  }
}
