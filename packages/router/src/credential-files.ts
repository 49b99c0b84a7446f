// The router's tokens, from files that may change at any moment (execution API, section 3.1). Each path is opened anew for each request,
// so that a replaced file and a moved symbolic link count at once; the content is read again only where the opened file is another one.
// That makes a request cheap, and is why this is not the client's `readTokenFile`, which reads the content each time.
import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { maxTokenFileBytes, parseToken } from "@cellkit/execution/contract";
import { type Credentials, distinctnessProblem } from "./core/credentials.ts";
import { isAmong, isSameToken } from "./core/token.ts";
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
  /** A second token that is also taken from clients, for a rotation. A file that is missing, or holds none that can be used, is none. */
  readonly otherClient?: string;
  /** The same for discovery. */
  readonly otherCapability?: string;
  /** A discovery token that cannot be used refuses discovery callers, and no others. The original refuses everybody. @default false */
  readonly isolateCapability?: boolean;
  /** Hears of tokens that are left out, at each `load`: discovery's for that reason, or a role's second one. */
  readonly onProblem?: (error: CredentialError, leftOut: "discovery" | "second") => void;
}

/** The usual source. Nothing is read before `load`. */
export function createCredentialFiles(options: CredentialFileOptions): CredentialSource {
  const client = filesOf("client", options.client, options.otherClient);
  const backend = new TokenFile("backend", options.backend);
  const capability =
    options.capability === undefined
      ? undefined
      : filesOf("capability", options.capability, options.otherCapability);
  let checked: Credentials | undefined;
  /** Discovery's tokens when they could last be used: while they cannot, none of them becomes another role's. */
  let known: readonly Uint8Array[] = [];
  let knownSecond: readonly Uint8Array[] = [];

  return {
    load() {
      const now = allOrWhatIsWrong();
      // The same buffers were accepted before.
      if (checked === undefined || !isSame(checked, now)) checked = now;
      return checked;
    },
  };

  /** All that is wrong with the files comes at once, so that they can be mended at once. */
  function allOrWhatIsWrong(): Credentials {
    try {
      return loadAll();
    } catch (error) {
      const problems = [client.first, backend, capability?.first].flatMap((file) => file?.problem() ?? []);
      if (problems.length < 2) throw error;
      throw new CredentialError(undefined, problems.join("; "), { cause: error });
    }
  }

  function loadAll(): Credentials {
    const roles = { client: [client.first.read()], backend: backend.read() };
    const problem = distinctnessProblem({ ...roles, capability: [] });
    if (problem !== undefined) throw new CredentialError(undefined, problem);
    const discovery = isolated(() => loadDiscovery(roles));
    if (discovery !== undefined) known = discovery;
    else if (isAmong(roles.client[0] as Uint8Array, known))
      throw new CredentialError(undefined, "the client token was the capability token");
    const secondDiscovery = discovery && second("capability", capability?.other, roles.backend, roles.client);
    if (discovery !== undefined) knownSecond = listOf(secondDiscovery);
    const readOnly = [...(discovery ?? known), ...knownSecond];
    // Also one that is refused for now must not be a client's.
    const first = discovery === undefined ? readable(capability?.first) : [];
    const unused = discovery === undefined ? [...first, ...readable(capability?.other)] : [];
    const isUnknown = discovery === undefined && known.length + first.length === 0;
    const secondClient = isUnknown
      ? withoutSecondClient()
      : second("client", client.other, roles.backend, [...readOnly, ...unused]);
    return {
      client: [...roles.client, ...listOf(secondClient)],
      backend: roles.backend,
      capability: [...(discovery ?? []), ...listOf(secondDiscovery)],
    };
  }

  /** A token that nobody has seen as discovery's might be the second one of clients, and give its callers all rights. */
  function withoutSecondClient(): undefined {
    if (client.other?.isThere() === true)
      options.onProblem?.(
        new CredentialError(
          "client",
          "no second client token is taken while the capability token is not known",
        ),
        "second",
      );
  }

  function loadDiscovery(roles: Omit<Credentials, "capability">): Uint8Array[] {
    if (capability === undefined) return [];
    const tokens = [capability.first.read()];
    const problem = distinctnessProblem({ ...roles, capability: tokens });
    if (problem !== undefined) throw new CredentialError(undefined, problem);
    return tokens;
  }

  /** undefined: discovery is left out. */
  function isolated(load: () => Uint8Array[]): Uint8Array[] | undefined {
    try {
      return load();
    } catch (error) {
      if (options.isolateCapability !== true || !(error instanceof CredentialError)) throw error;
      options.onProblem?.(error, "discovery");
      return undefined;
    }
  }

  /** A role's second token; undefined where there is none that can be used, which harms nobody's first one. */
  function second(
    role: TokenRole,
    file: TokenFile | undefined,
    backendToken: Uint8Array,
    others: readonly Uint8Array[],
  ): Uint8Array | undefined {
    try {
      const token = file?.readIfThere();
      if (token === undefined) return undefined;
      const problem = secondProblem(role, isSameToken(token, backendToken), isAmong(token, others));
      if (problem !== undefined) throw new CredentialError(role, problem);
      return token;
    } catch (error) {
      if (!(error instanceof CredentialError)) throw error;
      options.onProblem?.(error, "second");
      return undefined;
    }
  }
}

function secondProblem(role: TokenRole, isBackend: boolean, isOther: boolean): string | undefined {
  const [one, other] = role === "client" ? ["client", "capability"] : ["capability", "client"];
  if (isBackend) return `the second ${one} token equals the backend token`;
  return isOther ? `the second ${one} token equals a ${other} token` : undefined;
}

interface RoleFiles {
  readonly first: TokenFile;
  readonly other: TokenFile | undefined;
}

function filesOf(role: TokenRole, path: string, other: string | undefined): RoleFiles {
  return {
    first: new TokenFile(role, path),
    other: other === undefined ? undefined : new TokenFile(role, other),
  };
}

function listOf(token: Uint8Array | undefined): readonly Uint8Array[] {
  return token === undefined ? [] : [token];
}

/** A file's token where it has one. */
function readable(file: TokenFile | undefined): readonly Uint8Array[] {
  try {
    return listOf(file?.read());
  } catch (error) {
    if (error instanceof CredentialError) return [];
    throw error;
  }
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
  #identity = "";
  #token: Buffer | undefined;

  constructor(role: TokenRole, path: string) {
    this.#role = role;
    this.#path = path;
  }

  /** Whether there is something in its place, usable or not. */
  isThere(): boolean {
    return existsSync(this.#path);
  }

  /** What is wrong with it; undefined where it has a token. */
  problem(): string | undefined {
    try {
      this.read();
      return undefined;
    } catch (error) {
      if (error instanceof CredentialError) return error.problem;
      throw error;
    }
  }

  /** undefined: it is not there. */
  readIfThere(): Buffer | undefined {
    try {
      return this.read();
    } catch (error) {
      const { cause } = error as { cause?: NodeJS.ErrnoException };
      if (cause?.code === "ENOENT") return undefined;
      throw error;
    }
  }

  read(): Buffer {
    let fd: number;
    try {
      // A pipe without a writer must not stop the process.
      fd = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (cause) {
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
