// Requests, RPC calls and socket messages to the cells of the fixture `mirror`, one after the other in each kind, whose answers
// must be right or fail.
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import type { TestNode } from "./test-node.ts";

export const mirrorProject = fileURLToPath(new URL("../fixtures/mirror", import.meta.url));

/** Travels in every request, answer and message. */
export const secret = "the-secret-that-no-wire-may-show";

const mostRepeats = 400;

/** How a call went: its answer was right, it failed, or it was answered with something else. */
type End = { kind: "right" } | { kind: "failed" | "wrong"; what: string };

const right: End = { kind: "right" };

export const kinds = ["fetch", "rpc", "socket"] as const;

/** Calls through one node that go on until {@link MirrorLoad.stop}. */
export class MirrorLoad {
  readonly right = { fetch: 0, rpc: 0, socket: 0 };
  readonly failed: string[] = [];
  readonly wrong: string[] = [];
  readonly #node: TestNode;
  readonly #cell: string;
  /** How long a call waits for its answer. */
  callBoundMs: number;
  #running = true;
  readonly #work: Promise<void>[];

  constructor(node: TestNode, cell: string, callBoundMs: number) {
    this.#node = node;
    this.#cell = cell;
    this.callBoundMs = callBoundMs;
    const socket = new SocketCalls(`${node.publicUrl}/cells/${cell}/socket`, () => this.callBoundMs);
    this.#work = [
      this.#repeat("fetch", () => this.#post("fetch")),
      this.#repeat("rpc", () => this.#post("rpc")),
      this.#repeat("socket", () => socket.call()).then(() => socket.end()),
    ];
  }

  /** Lets the calls in flight end. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#work);
  }

  async #repeat(kind: (typeof kinds)[number], call: () => Promise<End>): Promise<void> {
    while (this.#running) {
      const end = await call();
      if (end.kind === "right") this.right[kind] += 1;
      else this[end.kind].push(`${kind}: ${end.what}`);
    }
  }

  async #post(action: "fetch" | "rpc"): Promise<End> {
    const body = message();
    try {
      const answer = await fetch(`${this.#node.publicUrl}/cells/${this.#cell}/${action}`, {
        method: "POST",
        body,
        signal: AbortSignal.timeout(this.callBoundMs),
      });
      const text = await answer.text();
      if (answer.status === 200 && text === body) return right;
      return { kind: answer.status >= 500 ? "failed" : "wrong", what: `${answer.status} ${text}` };
    } catch (error) {
      // No answer, or half of one.
      return { kind: "failed", what: String(error) };
    }
  }
}

/** Messages over a socket that is opened again when it was closed. */
class SocketCalls {
  readonly #url: string;
  readonly #boundMs: () => number;
  #socket: WebSocket | undefined;
  #heard: (message: string | undefined) => void = () => undefined;

  constructor(url: string, boundMs: () => number) {
    this.#url = url.replace(/^http/, "ws");
    this.#boundMs = boundMs;
  }

  async call(): Promise<End> {
    const text = message();
    if (this.#socket === undefined && !(await this.#open())) return { kind: "failed", what: "not opened" };
    const answer = this.#next();
    this.#socket?.send(text);
    const heard = await answer;
    if (heard === text) return right;
    this.end();
    return heard === undefined ? { kind: "failed", what: "closed" } : { kind: "wrong", what: heard };
  }

  end(): void {
    this.#socket?.terminate();
    this.#socket = undefined;
  }

  async #open(): Promise<boolean> {
    const socket = new WebSocket(this.#url, { perMessageDeflate: false });
    this.#socket = socket;
    socket.on("message", (data: Buffer) => this.#heard(data.toString()));
    socket.on("close", () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#heard(undefined);
    });
    // A close follows.
    socket.on("error", () => undefined);
    const hello = await this.#next();
    if (hello === undefined) this.end();
    return hello !== undefined;
  }

  /** The next message; undefined when the socket closes before, or none comes in time. */
  #next(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const late = setTimeout(() => resolve(undefined), this.#boundMs());
      this.#heard = (message) => {
        clearTimeout(late);
        resolve(message);
      };
    });
  }
}

/** What the fixture takes: the secret, then a token of its own any number of times. */
function message(): string {
  const token = randomBytes(8).toString("hex");
  return [secret, ...Array.from({ length: 1 + Math.floor(Math.random() * mostRepeats) }, () => token)].join(
    " ",
  );
}
