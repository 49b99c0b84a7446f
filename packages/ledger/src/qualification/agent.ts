/** A process that takes part in a qualification: it does what it is told, on standard input and output or any other pair of streams. */
import { readFile, statfs } from "node:fs/promises";
import { hostname } from "node:os";
import type { Readable, Writable } from "node:stream";
import { LedgerAgentError, LedgerError } from "../errors.ts";
import type { StoredLedger } from "../ledger.ts";
import { type OpenLedgerOptions, parseLedgerUrl } from "../open-ledger.ts";
import { AgentClaims } from "./agent-claims.ts";
import { AgentFiles } from "./agent-files.ts";
import { AgentLock, type Flock } from "./agent-lock.ts";
import { type AgentRequest, requestSchema } from "./agent-protocol.ts";
import { onLines } from "./lines.ts";
import { openProbeLedger, probeDirectory } from "./probe-place.ts";

/** Options of {@link serveAgent}. */
export interface AgentOptions {
  input: Readable;
  output: Writable;
  /** Of a bucket. */
  bucket?: OpenLedgerOptions["bucket"];
  /** In place of the store's own; for tests with a broken one. */
  open?: (url: string, probe: string, options: { requireExisting: boolean }) => Promise<StoredLedger>;
  /** In place of flock(2); for tests with a broken one. */
  flock?: Flock;
}

/** What an agent has once it knows its probe. */
interface Parts {
  claims: AgentClaims;
  /** Only of a directory. */
  files: AgentFiles | undefined;
  lock: AgentLock | undefined;
  directory: string | undefined;
}

/**
 * Serves one qualification until the input ends.
 * @param url the live ledger's address; the agent works only in probes beside it
 */
export async function serveAgent(url: string, options: AgentOptions): Promise<void> {
  const { input, output } = options;
  let parts: Parts | undefined;
  const write = (value: unknown): void => void output.write(`${JSON.stringify(value)}\n`);
  const answer = async (line: string): Promise<void> => {
    const { id, ...rest } = parseLine(line);
    try {
      const request = requestSchema.parse(rest);
      if (request.op === "begin") {
        await parts?.claims.close();
        parts = begin(url, request.probe, options, (acknowledged) => write({ acknowledged }));
        write({ id, ok: await introduction(parts.directory) });
      } else if (parts === undefined) throw new LedgerAgentError("this agent", "it was given no probe yet");
      else write({ id, ok: (await perform(parts, request)) ?? {} });
    } catch (error) {
      const code =
        error instanceof LedgerError ? error.code : ((error as NodeJS.ErrnoException).code ?? "unexpected");
      const message = error instanceof Error ? error.message : String(error);
      write({ id, error: { code, message: message.slice(0, 2_000) } });
    }
  };
  const { promise: ended, resolve: end, reject } = Promise.withResolvers<void>();
  onLines(
    input,
    (line) => void answer(line).catch(reject),
    () => reject(new LedgerAgentError("the other side", "it sent a line that is too long")),
  );
  input.once("end", () => end()).once("close", () => end());
  input.once("error", reject);
  output.once("error", reject);
  try {
    await ended;
  } finally {
    parts?.lock?.unlock();
    await parts?.claims.close();
  }
}

function parseLine(line: string): { id: number; [member: string]: unknown } {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null || !("id" in value) || typeof value.id !== "number")
    throw new LedgerAgentError("the other side", "it sent something that is no request");
  return { ...value, id: value.id };
}

function begin(
  url: string,
  probe: string,
  { bucket, open, flock }: AgentOptions,
  onAcknowledged: (id: string) => void,
): Parts {
  const location = parseLedgerUrl(url);
  const directory = location.kind === "posix" ? probeDirectory(location.directory, probe) : undefined;
  const openOwn = (options: { requireExisting: boolean }): Promise<StoredLedger> =>
    open === undefined ? openProbeLedger(url, probe, { ...options, bucket }) : open(url, probe, options);
  return {
    claims: new AgentClaims(openOwn, onAcknowledged),
    files:
      directory === undefined
        ? undefined
        : new AgentFiles(
            `${directory}/files`,
            `${hostname()
              .toLowerCase()
              .slice(0, 20)
              .replaceAll(/[^a-z0-9]/g, "-")}-${process.pid}`,
          ),
    lock: directory === undefined ? undefined : new AgentLock(`${directory}/ledger/ownership.lock`, flock),
    directory,
  };
}

async function introduction(directory: string | undefined) {
  const who = {
    ...{ pid: process.pid, host: hostname(), node: process.version },
    ...{ machine: await machineId(), timeMs: Date.now() },
  };
  if (directory === undefined) return who;
  const found = await statfs(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return found === undefined
    ? { ...who, seesProbe: false }
    : { ...who, seesProbe: true, fileSystem: found.type };
}

/** Linux makes one at each start of the machine. Elsewhere the host's name must do. */
async function machineId(): Promise<string> {
  return readFile("/proc/sys/kernel/random/boot_id", "utf8").then(
    (text) => text.trim(),
    () => hostname(),
  );
}

/** Does what a request asks for; what it answers is checked by who asked. */
async function perform(parts: Parts, request: Exclude<AgentRequest, { op: "begin" }>): Promise<unknown> {
  const { claims } = parts;
  switch (request.op) {
    case "open":
      return claims.open(request.requireExisting);
    case "close":
      return claims.close();
    case "claim":
      return claims.claim(request.ids, request.body, request.owner);
    case "claimOn":
      return claims.claimOn(request.prefix, request.body, request.owner);
    case "claimed":
      return claims.claimed();
    case "lookup":
      return claims.lookup(request.ids);
    case "count":
      return claims.count();
  }
  const { files, lock, directory } = parts;
  if (files === undefined || lock === undefined || directory === undefined)
    throw new LedgerAgentError("this agent", `${request.op} is for directories only`);
  switch (request.op) {
    case "lock":
      return lock.lock(request.waitMs);
    case "unlock":
      return lock.unlock();
    case "contend":
      return lock.contend();
    case "contendFcntl":
      return lock.contendFcntl();
    case "increment":
      return lock.increment(`${directory}/files`, request.count);
    case "race":
      return files.race(request.prefix, request.count, request.how, request.partyCount);
    case "put":
      return files.put(request.name, request.text);
    case "get":
      return files.get(request.name);
    case "look":
      return files.look(request.name);
    case "publish":
      return files.publish(request.prefix, request.count, request.how);
    case "watch":
      return files.watch(request.prefix, request.count, request.how);
    case "sync":
      return files.sync();
    case "times":
      return files.times(request.prefix, request.count);
  }
}
