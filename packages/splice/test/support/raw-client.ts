// A TCP client that keeps every byte and knows how its connection ended.
import { connect, type Socket } from "node:net";
import { hrtime } from "node:process";
import { onTestFinished } from "vitest";

const patienceMs = 30_000;
/** Neither the wall clock, which somebody may set, nor the one that a test may hold. */
const nowMs = () => Number(hrtime.bigint() / 1_000_000n);
/** A condition may hold by something that is no event of this socket. */
const lookMs = 5;

export class RawClient {
  readonly socket: Socket;
  bytes = Buffer.alloc(0);
  /** What `fill` has still to send. */
  unsentBytes = 0;
  /** The peer's FIN came. */
  ended = false;
  /** The connection was reset or failed: the error's code. */
  error: string | undefined;
  #wake: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
      this.#stir();
    });
    socket.on("end", () => {
      this.ended = true;
      this.#stir();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.error = error.code ?? error.message;
      this.#stir();
    });
    socket.on("close", () => this.#stir());
  }

  get text(): string {
    return this.bytes.toString("latin1");
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** Waits until the condition holds; fails with what was received when it does not in time. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const deadline = nowMs() + patienceMs;
    while (!condition()) {
      const leftMs = deadline - nowMs();
      if (leftMs <= 0) {
        throw new Error(
          `no ${what}; ended ${this.ended}, error ${this.error}, received: ${this.text.slice(0, 2000)}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, lookMs));
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Waits for text; answers everything received so far. */
  async receive(part: string, count = 1): Promise<string> {
    await this.until(JSON.stringify(part), () => this.text.split(part).length > count);
    return this.text;
  }

  /** Sends so many bytes of one letter, piece after piece as they leave, so that `stalled` can see how far they got. */
  fill(letter: string, sizeBytes: number): this {
    const piece = Buffer.alloc(64 * 1024, letter);
    this.unsentBytes = sizeBytes;
    const send = () => {
      const next = piece.subarray(0, Math.min(piece.length, this.unsentBytes));
      this.unsentBytes -= next.length;
      if (next.length > 0) this.socket.write(next, send);
    };
    send();
    return this;
  }

  /** Reads on without keeping what comes, until so many more bytes came after `before`; all must be the letter. */
  async drained(before: string, letter: string, sizeBytes: number): Promise<void> {
    let received = 0;
    let strange: string | undefined;
    const piece = Buffer.alloc(1024 * 1024, letter);
    this.socket.removeAllListeners("data");
    this.socket.on("data", (chunk: Buffer) => {
      const head = Math.max(0, Math.min(chunk.length, before.length - received));
      const isAsSent =
        chunk.toString("latin1", 0, head) === before.slice(received, received + head) &&
        chunk.subarray(head).equals(piece.subarray(0, chunk.length - head));
      if (!isAsSent) strange ??= `at byte ${received}: ${chunk.toString("latin1", 0, 100)}`;
      received += chunk.length;
    });
    this.socket.resume();
    await this.until("all bytes", () => received >= before.length + sizeBytes);
    if (strange !== undefined || received > before.length + sizeBytes)
      throw new Error(`${received}: ${strange}`);
  }

  /** Waits until `fill` does not get on any more: the peer has stopped reading, and all buffers are full. */
  async stalled(turn: () => Promise<void>): Promise<void> {
    let before = -1;
    await turn();
    while (before !== this.unsentBytes) {
      before = this.unsentBytes;
      await turn();
      await turn();
    }
    if (before === 0) throw new Error("the peer took everything");
  }

  /** Waits for the peer's FIN; a reset fails. */
  async end(): Promise<string> {
    await this.until("FIN", () => this.ended || this.error !== undefined);
    if (this.error !== undefined) throw new Error(`reset (${this.error}) after: ${this.text}`);
    return this.text;
  }

  #stir(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }
}

/** Opens a connection that the test's end closes. Half-open, so that a FIN does not end our sending. */
export async function dial(port: number): Promise<RawClient> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
  onTestFinished(() => {
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return new RawClient(socket);
}
