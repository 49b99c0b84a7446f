import { createSpliceServer, type LocalAnswer, type LocalRequest, type SpliceServer } from "@cellkit/splice";
import { ListenError } from "../errors.ts";
import type { ResolvedFleetOptions } from "./options.ts";
import { Worker } from "./worker.ts";

/** A node of a {@link TestFleet}. */
export interface TestNode {
  readonly name: string;
  /** `http://host:port`; stays the same over restarts. */
  readonly url: string;
  /** `serving`, then `draining`, then `stopped`; `stopped` at once by a kill. */
  readonly state: "serving" | "draining" | "stopped";
  /** Requests that its application got, in this life. */
  readonly requestCount: number;
  /** Requests that its drain refused, in this life. */
  readonly refusedCount: number;
  /** WebSockets that are open. */
  readonly socketCount: number;
  /** What its health says while it serves: false is a node that is not well. */
  healthy: boolean;
  /**
   * Begins to leave, as celld does: health 503, new requests get the refusal, WebSockets a close frame of 1012
   * `node draining`. Resolves when nothing is in flight any more; it goes on refusing. @throws the signal's reason
   */
  drain(options?: { signal?: AbortSignal }): Promise<void>;
  /** {@link drain}, then it is gone. @throws the signal's reason */
  stop(options?: { signal?: AbortSignal }): Promise<void>;
  /** As SIGKILL: everything is cut, and nobody listens. */
  kill(): Promise<void>;
  /** A new life at the same address, after killing the one before. @throws ListenError (`CELLKIT_TESTING_LISTEN`) */
  restart(): Promise<void>;
}

const healthPath = "/__celld/health";
const json = { "content-type": "application/json" };
const draining = { code: 1012, reason: "node draining" };

/** A node in this process: celld's public listener before an application of the test's. */
export class LocalNode implements TestNode {
  readonly name: string;
  healthy = true;
  readonly #options: ResolvedFleetOptions;
  readonly #socketPath: string;
  #life: { readonly splice: SpliceServer; readonly worker: Worker } | undefined;
  #port = 0;

  constructor(name: string, socketPath: string, options: ResolvedFleetOptions) {
    this.name = name;
    this.#socketPath = socketPath;
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get state(): TestNode["state"] {
    if (this.#life === undefined) return "stopped";
    return this.#life.splice.draining ? "draining" : "serving";
  }

  get requestCount(): number {
    return this.#life?.worker.requestCount ?? 0;
  }

  get refusedCount(): number {
    return this.#life?.splice.totals.refused ?? 0;
  }

  get socketCount(): number {
    return this.#life?.splice.counts().sockets ?? 0;
  }

  async drain(options: { signal?: AbortSignal } = {}): Promise<void> {
    const splice = this.#life?.splice;
    splice?.drain();
    splice?.closeSockets(draining.code, draining.reason);
    await splice?.finished(options);
  }

  async stop(options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.drain(options);
    await this.kill();
  }

  async kill(): Promise<void> {
    const life = this.#life;
    this.#life = undefined;
    // Clients first: none may be told that the application is gone.
    await life?.splice.close();
    await life?.worker.stop();
  }

  async restart(): Promise<void> {
    await this.kill();
    const worker = await Worker.start(this.#socketPath, this.name, this.#options);
    const splice = createSpliceServer(() => worker.path, { local: (request) => this.#local(request) });
    this.#life = { splice, worker };
    try {
      this.#port = (await splice.listen("127.0.0.1", this.#port)).port;
    } catch (cause) {
      await this.kill();
      throw new ListenError("127.0.0.1", this.#port, { cause });
    }
  }

  #local({ target }: LocalRequest): LocalAnswer | undefined {
    if (target.replace(/\?.*$/s, "") !== healthPath) return undefined;
    const ok = this.healthy && this.state === "serving";
    return { status: ok ? 200 : 503, headers: json, body: JSON.stringify({ ok }) };
  }
}
