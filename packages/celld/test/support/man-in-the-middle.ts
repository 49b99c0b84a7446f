// A TCP proxy before a node's internal listener that reads along and, when it is told to, changes what it passes on.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { canStrike, isForHead, type Random, type Stroke, strike, turned } from "./tamper.ts";

/** Towards the node that listens, or towards the one that dialled. */
export type Direction = "to-node" | "to-dialler";

/** One attack. */
export interface Attack {
  readonly stroke: Stroke;
  readonly direction: Direction;
  /** Bytes of that direction that pass before the stroke. Heads are struck as they come. */
  readonly afterBytes: number;
  readonly random: Random;
}

/** How long a chunk is held back for another one to overtake it. */
const heldMs = 20;

interface Armed {
  readonly attack: Attack;
  leftBytes: number;
  struck: () => void;
  found: () => void;
}

export class ManInTheMiddle implements AsyncDisposable {
  /** Port of the listener behind it. */
  target = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  /** Sockets that were closed from here, and not by their other end. */
  readonly #cut = new WeakSet<Socket>();
  readonly #watched = new Map<string, number>();
  #armed: Armed | undefined;

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (dialler: Socket) => this.#join(dialler));
  }

  static async open(): Promise<ManInTheMiddle> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ManInTheMiddle(server);
  }

  /** `host:port` of the proxy. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Counts from here on how often `text` passes in the clear, also across chunks. */
  watchFor(text: string): void {
    this.#watched.set(text, 0);
  }

  seen(text: string): number {
    return this.#watched.get(text) ?? 0;
  }

  /** Ends what is connected. */
  cut(): void {
    for (const socket of this.#open) this.#destroy(socket);
  }

  /**
   * Attacks the next connection that has the bytes for it. `detected`: the end that got the changed bytes closed it.
   * @param boundMs for the stroke, and from there for its detection
   */
  async attack(attack: Attack, boundMs: number): Promise<"detected" | "undetected" | "no bytes came"> {
    const struck = Promise.withResolvers<void>();
    const found = Promise.withResolvers<void>();
    this.#armed = { attack, leftBytes: attack.afterBytes, struck: struck.resolve, found: found.resolve };
    if (!(await within(struck.promise, boundMs))) return "no bytes came";
    return (await within(found.promise, boundMs)) ? "detected" : "undetected";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.cut();
  }

  #join(dialler: Socket): void {
    const node = connect({ host: "127.0.0.1", port: this.target, noDelay: true, allowHalfOpen: true });
    for (const [one, other] of [
      [dialler, node],
      [node, dialler],
    ] as const) {
      this.#open.add(one);
      one.on("error", () => undefined);
      one.once("close", () => {
        this.#open.delete(one);
        this.#destroy(other);
      });
    }
    this.#pass(dialler, node, "to-node");
    this.#pass(node, dialler, "to-dialler");
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    let before: Uint8Array = Buffer.alloc(0);
    let held: Uint8Array | undefined;
    let isFirst = true;
    let swallows = false;
    const tails = new Map<string, string>();
    const release = (parts: readonly Uint8Array[]) => {
      held = undefined;
      for (const part of parts) if (!to.destroyed) to.write(part);
    };
    from.on("data", (chunk: Buffer) => {
      this.#read(chunk, tails);
      if (swallows) return;
      if (held !== undefined) {
        release([chunk, held]);
        return;
      }
      const armed = this.#due(direction, chunk, isFirst);
      isFirst = false;
      if (armed === undefined) {
        before = chunk;
        release([chunk]);
        return;
      }
      // Of records, only the end that gets the changed ones can tell: its closing counts, no other.
      const tellers = isForHead(armed.attack.stroke) ? [from, to] : [to];
      for (const teller of tellers) {
        teller.once("end", armed.found);
        teller.once("close", () => void (this.#cut.has(teller) || armed.found()));
      }
      const struck = strike(armed.attack.stroke, chunk, before, armed.attack.random);
      release(struck.passed);
      held = struck.held;
      if (held !== undefined) setTimeout(() => held !== undefined && release(turned(held)), heldMs);
      if (struck.ends === true) {
        swallows = true;
        to.end();
      }
      armed.struck();
    });
    from.on("end", () => {
      if (!swallows) to.end();
    });
  }

  /** The attack that this chunk is for. */
  #due(direction: Direction, chunk: Uint8Array, isFirst: boolean): Armed | undefined {
    const armed = this.#armed;
    if (armed?.attack.direction !== direction) return undefined;
    const atHead = isForHead(armed.attack.stroke);
    if (atHead !== isFirst) return undefined;
    if (!canStrike(armed.attack.stroke, chunk)) return undefined;
    armed.leftBytes -= chunk.length;
    if (!atHead && armed.leftBytes > 0) return undefined;
    this.#armed = undefined;
    return armed;
  }

  #destroy(socket: Socket): void {
    if (socket.destroyed) return;
    this.#cut.add(socket);
    socket.destroy();
  }

  #read(chunk: Buffer, tails: Map<string, string>): void {
    for (const [text, count] of this.#watched) {
      const seen = (tails.get(text) ?? "") + chunk.toString("latin1");
      this.#watched.set(text, count + seen.split(text).length - 1);
      tails.set(text, seen.slice(Math.max(0, seen.length - text.length + 1)));
    }
  }
}

/** Whether a promise settles in time. */
async function within(promise: Promise<void>, boundMs: number): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), boundMs);
  return await Promise.race([promise.then(() => true), late.promise]).finally(() => clearTimeout(timer));
}
