// Plays one case of the vectors against a router over TCP, whoever started it: in this process or another one.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RawAnswer, rawCall } from "./raw-call.ts";
import { jsonAnswer, ScriptedBackend } from "./scripted-backend.ts";
import { TestError } from "./test-error.ts";
import { type CallVector, type HttpVector, vectors } from "./vectors.ts";

/** What a router is to be started with. */
export interface VectorPlace {
  readonly backends: readonly string[];
  readonly ledgerDirectory: string;
  readonly capacity: number | undefined;
  /** The ledger's lock will never be free: waiting for it is to end soon. Elsewhere it must not end, however busy the machine is. */
  readonly isLocked: boolean;
  readonly tokenFiles: { readonly client: string; readonly backend: string; readonly capability: string };
}

/** A router under test. */
export interface RouterUnderTest {
  readonly port: number;
  stop(): Promise<void>;
}

/** What happened. */
export interface VectorResult {
  readonly answer: RawAnswer | undefined;
  /** Calls that came, by the names that the case has for the backends. */
  readonly calls: readonly string[];
  readonly expectedCalls: readonly string[];
  /** What stands in the ledger's directory: the texts of all files but the lock's and ours. */
  readonly files: Readonly<Record<string, string>>;
  readonly expectedFiles: Readonly<Record<string, string>>;
}

/**
 * Plays a case. Its origins are replaced by those of backends in this process; nothing else is changed.
 * @param start opens the router
 */
export async function runVector(
  vector: HttpVector,
  start: (place: VectorPlace) => Promise<RouterUnderTest>,
): Promise<VectorResult> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-router-vector-"));
  const backends = new Map<string, ScriptedBackend>();
  for (const name of namesIn(vector)) backends.set(name, await ScriptedBackend.open());
  const moved = move(vector, backends);
  const calls: string[] = [];
  for (const [name, backend] of backends) backend.answer = scripted(moved, vector, name, calls);
  const ledgerDirectory = join(directory, "ledger");
  await prepareLedger(ledgerDirectory, moved);
  const tokenFiles = await writeTokens(directory);
  let lock: (() => void) | undefined;
  let router: RouterUnderTest | undefined;
  try {
    router = await start({
      backends: moved.backends,
      ledgerDirectory,
      capacity: vector.capacity,
      isLocked: vector.lockHeldElsewhere === true,
      tokenFiles,
    });
    await spoilTokens(tokenFiles, vector);
    if (vector.lockHeldElsewhere === true) lock = await holdLock(ledgerDirectory);
    const answer = await rawCall(router.port, requestBytes(moved));
    const back = [...backends].map(([name, { origin }]) => [origin, name] as const);
    const restore = (text: string) =>
      back.reduce((now, [origin, name]) => now.replaceAll(origin, name), text);
    const expectedFiles = Object.fromEntries([
      ...(vector.ledgerAfter ?? []).map(({ file, record }) => [file, JSON.stringify(record)] as const),
      ...(vector.rawFilesAfter ?? []).map(({ file, text }) => [file, text] as const),
    ]);
    const expectedCalls = vector.backendTranscript.map(lineOf);
    const isUnordered = vector.backendTranscriptUnordered === true;
    return {
      answer,
      calls: isUnordered ? calls.sort() : calls,
      expectedCalls: isUnordered ? expectedCalls.sort() : expectedCalls,
      files: await readFiles(ledgerDirectory, restore),
      expectedFiles,
    };
  } finally {
    lock?.();
    await router?.stop();
    await Promise.all([...backends.values()].map((backend) => backend.close()));
    await rm(directory, { recursive: true });
  }
}

function namesIn(vector: HttpVector): string[] {
  const recorded = [...(vector.ledgerBefore ?? []), ...(vector.ledgerAfter ?? [])].map(
    ({ record }) => record.backend,
  );
  const called = vector.backendTranscript.map(({ backend }) => backend);
  return [...new Set([...vector.backends, ...recorded, ...called])];
}

function move(vector: HttpVector, backends: ReadonlyMap<string, ScriptedBackend>): HttpVector {
  let text = JSON.stringify({ ...vector, request: { ...vector.request, body: "" } });
  // Longest first: one name may begin another one.
  const names = [...backends.keys()].sort((one, other) => other.length - one.length);
  for (const name of names) text = text.replaceAll(name, backends.get(name)?.origin ?? "");
  const moved = JSON.parse(text) as HttpVector;
  return { ...moved, request: { ...moved.request, body: vector.request.body } };
}

function requestBytes({ request }: HttpVector): Buffer {
  const headers = request.headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = `${request.method} ${request.path} HTTP/1.1\r\n${headers}\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(request.body)]);
}

function lineOf({ backend, method, path, bearer, bodyIsExactRequestBytes }: CallVector): string {
  return `${method} ${backend}${path} ${bearer}${bodyIsExactRequestBytes === true ? " exact" : ""}`;
}

/** One that answers what the case says for each call, and nothing to a call that is not in it. */
function scripted(
  moved: HttpVector,
  vector: HttpVector,
  name: string,
  calls: string[],
): ScriptedBackend["answer"] {
  const left = vector.backendTranscript.filter(({ backend }) => backend === name);
  return ({ method, path, fields, body }) => {
    const at = left.findIndex((call) => call.method === method && call.path === path);
    const [call] = at === -1 ? [] : left.splice(at, 1);
    const bearer = fields.find(([field]) => field === "Authorization")?.[1].replace("Bearer ", "");
    const role = Object.entries(vectors.tokens).find(([, token]) => token === bearer)?.[0] ?? "no token";
    const isExact = call?.bodyIsExactRequestBytes === true && body.equals(Buffer.from(moved.request.body));
    calls.push(`${method} ${name}${path} ${role}${isExact ? " exact" : ""}`);
    // Here an owner is chosen before the lock is taken, so that the lock alone stands in the way.
    if (vector.lockHeldElsewhere === true && path === "/v1/health")
      return jsonAnswer(200, { ok: true, kvm: true });
    return call?.reply == null ? undefined : jsonAnswer(call.reply.status, call.reply.json);
  };
}

async function prepareLedger(directory: string, vector: HttpVector): Promise<void> {
  await mkdir(directory);
  for (const { file, record } of vector.ledgerBefore ?? [])
    await writeFile(join(directory, file), JSON.stringify(record), { mode: 0o600 });
  for (const { file, text } of vector.rawFilesBefore ?? [])
    await writeFile(join(directory, file), text, { mode: 0o600 });
}

async function writeTokens(directory: string): Promise<VectorPlace["tokenFiles"]> {
  const write = async (role: TokenRole) => {
    const path = join(directory, `${role}-token`);
    await writeFile(path, `${vectors.tokens[role]}\n`, { mode: 0o600 });
    return path;
  };
  return {
    client: await write("client"),
    backend: await write("backend"),
    capability: await write("capability"),
  };
}

/** A router that found them so would not start. */
async function spoilTokens(files: VectorPlace["tokenFiles"], { tokenFiles = {} }: HttpVector): Promise<void> {
  for (const [role, text] of Object.entries(tokenFiles)) await writeFile(files[role as TokenRole], text);
}

type TokenRole = keyof VectorPlace["tokenFiles"];

/** Another process takes the ledger's lock. */
async function holdLock(directory: string): Promise<() => void> {
  const child = spawn("flock", [join(directory, "ownership.lock"), "-c", "echo held; exec sleep 60"], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "error").then(([error]) => {
      throw new TestError("flock(1) cannot be run", { cause: error });
    }),
  ]);
  return () => process.kill(-(child.pid as number), "SIGKILL");
}

async function readFiles(
  directory: string,
  restore: (text: string) => string,
): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const { name } = entry;
    // The lock, and what our ledgers keep for themselves, which originals do not look at.
    if (!entry.isFile() || name === "ownership.lock" || name.startsWith("cellkit")) continue;
    files[name] = restore(await readFile(join(directory, name), "utf8"));
  }
  return files;
}
