/**
 * A TCP connection between a qualification and a peer, after each has proven to the other that it knows the secret. Every
 * line then has a proof of its own, with a number: nothing can be changed, repeated, left out or put in. It is not
 * encrypted; what it carries is made up for the qualification.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { z } from "zod";
import { LedgerAgentError } from "../errors.ts";
import { jsonOf, onLines } from "./lines.ts";

/** A shorter secret could be found by trying, by whoever records a handshake. */
const MIN_SECRET_LENGTH = 32;

/** For a whole handshake. */
const HANDSHAKE_MS = 10_000;
const MAX_HANDSHAKE_LINE = 1_024;

const hex32 = z.string().regex(/^[0-9a-f]{64}$/);
const helloSchema = z.strictObject({ cellkitQualifyAgent: z.literal(1), nonce: hex32 });
const proofSchema = z.strictObject({ nonce: hex32, proof: hex32 });
const welcomeSchema = z.strictObject({ proof: hex32 });

type Role = "client" | "server";

/** @throws LedgerAgentError for a secret that is too short; it is not shown */
export function checkSecret(secret: string): void {
  if (secret.length < MIN_SECRET_LENGTH)
    throw new LedgerAgentError(
      "the secret",
      `it has ${secret.length} characters, and ${MIN_SECRET_LENGTH} are needed: make one with \`openssl rand -hex 32\``,
    );
}

function mac(secret: string | Buffer, ...parts: readonly string[]): Buffer {
  return createHmac("sha256", secret).update(parts.join("\n")).digest();
}

function isSame(expected: Buffer, given: string): boolean {
  const bytes = Buffer.from(given, "hex");
  return bytes.length === expected.length && timingSafeEqual(expected, bytes);
}

/** Lines with proofs, in both directions. */
export class AgentChannel {
  readonly #socket: Socket;
  readonly #sendKey: Buffer;
  readonly #takeKey: Buffer;
  #sent = 0;
  #taken = 0;
  #onLine: ((line: string) => void) | undefined;
  #early: string[] = [];

  constructor(socket: Socket, role: Role, keys: Record<Role, Buffer>) {
    this.#socket = socket;
    this.#sendKey = keys[role];
    this.#takeKey = keys[role === "client" ? "server" : "client"];
  }

  send(line: string): void {
    const proof = mac(this.#sendKey, String(this.#sent++), line).toString("hex");
    this.#socket.write(`${proof} ${line}\n`);
  }

  /** Lines that came before are handed on at once. */
  onLine(take: (line: string) => void): void {
    this.#onLine = take;
    for (const line of this.#early.splice(0)) take(line);
  }

  /** A line that proves nothing ends the connection. */
  take(text: string): void {
    const [proof = "", line = ""] = [text.slice(0, 64), text.slice(65)];
    if (!isSame(mac(this.#takeKey, String(this.#taken++), line), proof)) {
      this.#socket.destroy(new LedgerAgentError("the connection", "a line was changed on its way"));
      return;
    }
    if (this.#onLine === undefined) this.#early.push(line);
    else this.#onLine(line);
  }
}

/**
 * Makes a channel of a fresh connection.
 * @param peer who is at the other end, for messages
 * @throws LedgerAgentError (CELLKIT_LEDGER_AGENT); the connection is closed then
 */
export async function openChannel(
  socket: Socket,
  role: Role,
  { secret, peer }: { secret: string; peer: string },
): Promise<AgentChannel> {
  const { promise, resolve, reject } = Promise.withResolvers<AgentChannel>();
  const refuse = (problem: string): void => {
    socket.destroy();
    reject(new LedgerAgentError(peer, problem));
  };
  const timer = setTimeout(
    () => refuse("it did not prove within 10 s that it knows the secret"),
    HANDSHAKE_MS,
  );
  const nonce = randomBytes(32).toString("hex");
  let channel: AgentChannel | undefined;
  /** Of the client, once it has the server's. */
  let nonces: [server: string, client: string] | undefined;
  const write = (value: unknown): void => void socket.write(`${JSON.stringify(value)}\n`);
  const proofOf = (who: Role, each: readonly string[]) => mac(secret, `cellkit qualify 1 ${who}`, ...each);
  const ready = (each: readonly string[]): void => {
    const keyOf = (who: Role) => mac(secret, `cellkit qualify 1 lines of the ${who}`, ...each);
    channel = new AgentChannel(socket, role, { client: keyOf("client"), server: keyOf("server") });
    clearTimeout(timer);
    resolve(channel);
  };
  const asServer = (value: unknown): void => {
    const given = proofSchema.safeParse(value);
    if (!given.success) {
      refuse("it is no cellkit qualification");
      return;
    }
    const each = [nonce, given.data.nonce];
    if (isSame(proofOf("client", each), given.data.proof)) {
      write({ proof: proofOf("server", each).toString("hex") });
      ready(each);
    } else refuse("it has another secret");
  };
  const asClient = (value: unknown): void => {
    if (nonces === undefined) {
      const hello = helloSchema.safeParse(value);
      if (hello.success) {
        nonces = [hello.data.nonce, nonce];
        write({ nonce, proof: proofOf("client", nonces).toString("hex") });
      } else refuse("there is no cellkit agent at this address");
      return;
    }
    const welcome = welcomeSchema.safeParse(value);
    if (welcome.success && isSame(proofOf("server", nonces), welcome.data.proof)) ready(nonces);
    else refuse("it has another secret");
  };
  onLines(
    socket,
    (line) => {
      if (channel !== undefined) channel.take(line);
      else if (line.length > MAX_HANDSHAKE_LINE) refuse("it is no cellkit qualification");
      else (role === "server" ? asServer : asClient)(jsonOf(line));
    },
    () => refuse("it sent a line that is too long"),
  );
  socket.on("error", (error) => refuse(error.message));
  socket.once("close", () =>
    refuse(
      role === "client" && nonces === undefined
        ? "it closed the connection before it said a word: it is no cellkit agent, or too many others connect to it"
        : "it closed the connection: does it have the same secret?",
    ),
  );
  if (role === "server") write({ cellkitQualifyAgent: 1, nonce });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
