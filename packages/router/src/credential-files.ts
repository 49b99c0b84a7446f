// The router's tokens, from files that may change at any moment (execution API, section 3.1). Each path is opened anew for each request,
// so that a replaced file and a moved symbolic link count at once; the content is read again only where the opened file is another one.
// That makes a request cheap, and is why this is not the client's `readTokenFile`, which reads the content each time.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { maxTokenFileBytes, parseToken } from "@cellkit/execution/contract";
import { type Credentials, distinctnessProblem } from "./core/credentials.ts";
import { isSameToken } from "./core/token.ts";
import { CredentialError, type TokenRole } from "./errors.ts";

/** Where the router takes its tokens from, anew for each request. */
export interface CredentialSource {
  /** @throws CredentialError (CELLKIT_ROUTER_CREDENTIALS) */
  load(): Credentials;
}

/** What {@link createCredentialFiles} takes: one file for each role. */
export interface CredentialFileOptions {
  /** Callers that may do everything. */
  readonly client: string;
  /** What the router shows to dispatchers. */
  readonly backend: string;
  /** Callers that may only ask for capabilities. Without it there are none. */
  readonly capability?: string;
  /** A second token that is also taken from clients, for a rotation. A file that is missing is none. */
  readonly otherClient?: string;
  /** The same for discovery. */
  readonly otherCapability?: string;
  /** A discovery token that cannot be used refuses discovery callers, and no others. The original refuses everybody. @default false */
  readonly isolateCapability?: boolean;
  /** Hears of it when the discovery token is left out for that reason. */
  readonly onProblem?: (error: CredentialError) => void;
}

/** The usual source. Nothing is read before `load`. */
export function createCredentialFiles(options: CredentialFileOptions): CredentialSource {
  const client = filesOf("client", options.client, options.otherClient);
  const backend = new TokenFile("backend", options.backend);
  const capability =
    options.capability === undefined
      ? []
      : filesOf("capability", options.capability, options.otherCapability);
  let checked: Credentials | undefined;

  const load = (withCapability: boolean): Credentials => {
    const now: Credentials = {
      client: tokensOf(client),
      backend: backend.read() as Buffer,
      capability: withCapability ? tokensOf(capability) : [],
    };
    // The same buffers were compared before.
    if (checked !== undefined && isSame(checked, now)) return checked;
    const problem = distinctnessProblem(now);
    if (problem !== undefined) throw new CredentialError(undefined, problem);
    checked = now;
    return now;
  };

  return {
    load() {
      try {
        return load(true);
      } catch (error) {
        if (options.isolateCapability !== true || !(error instanceof CredentialError)) throw error;
        const others = load(false);
        options.onProblem?.(error);
        return others;
      }
    },
  };
}

function filesOf(role: TokenRole, path: string, other: string | undefined): TokenFile[] {
  const files = [new TokenFile(role, path)];
  if (other !== undefined) files.push(new TokenFile(role, other, { isOptional: true }));
  return files;
}

function tokensOf(files: readonly TokenFile[]): Buffer[] {
  return files.map((file) => file.read()).filter((token) => token !== undefined);
}

function isSame(one: Credentials, other: Credentials): boolean {
  const all = ({ client, backend, capability }: Credentials) => [
    ...client,
    undefined,
    backend,
    ...capability,
  ];
  const [left, right] = [all(one), all(other)];
  return left.length === right.length && left.every((token, at) => token === right[at]);
}

/** For how long after its last change a file is read each time: a later change could leave the same times behind. */
const settledMs = 2_000n;

/** One file. It answers the same buffer as long as the file is the same. */
class TokenFile {
  readonly #role: TokenRole;
  readonly #path: string;
  readonly #isOptional: boolean;
  #identity = "";
  #token: Buffer | undefined;

  constructor(role: TokenRole, path: string, { isOptional = false }: { isOptional?: boolean } = {}) {
    this.#role = role;
    this.#path = path;
    this.#isOptional = isOptional;
  }

  /** undefined: optional, and not there. */
  read(): Buffer | undefined {
    let fd: number;
    try {
      // A pipe without a writer must not stop the process.
      fd = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (cause) {
      if (this.#isOptional && (cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw this.#problem(`cannot be opened (${(cause as NodeJS.ErrnoException).code})`, cause);
    }
    try {
      return this.#readOpen(fd);
    } catch (cause) {
      if (cause instanceof CredentialError) throw cause;
      throw this.#problem(`cannot be read (${(cause as NodeJS.ErrnoException).code})`, cause);
    } finally {
      closeSync(fd);
    }
  }

  #readOpen(fd: number): Buffer {
    const stat = fstatSync(fd, { bigint: true });
    const identity = `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
    if (identity === this.#identity && this.#token !== undefined) return this.#token;
    this.#identity = "";
    if (!stat.isFile()) throw this.#problem("is no regular file");
    const bytes = Buffer.alloc(maxTokenFileBytes + 1);
    const parsed = parseToken(bytes.subarray(0, readWhole(fd, bytes)));
    if ("problem" in parsed) throw this.#problem(parsed.problem);
    const isSettled = BigInt(Date.now()) - stat.ctimeMs > settledMs;
    if (isSettled) this.#identity = identity;
    const token = Buffer.from(parsed.token, "latin1");
    if (this.#token === undefined || !isSameToken(token, this.#token)) this.#token = token;
    return this.#token;
  }

  #problem(problem: string, cause?: unknown): CredentialError {
    return new CredentialError(this.#role, `the ${this.#role} token's file ${this.#path} ${problem}`, {
      cause,
    });
  }
}

/** How many bytes were there, at most as many as fit. */
function readWhole(fd: number, bytes: Buffer): number {
  let length = 0;
  while (length < bytes.length) {
    const count = readSync(fd, bytes, length, bytes.length - length, length);
    if (count === 0) break;
    length += count;
  }
  return length;
}
