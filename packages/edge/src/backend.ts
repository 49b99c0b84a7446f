// The way to the backend: at most so many connections, each for one request, and no request ever sent twice.
import { type Dispatcher, Pool } from "undici";
import type { BackendOrigin } from "./core/backend-origin.ts";
import type { EdgeLimits } from "./limits.ts";

/** A request as the backend gets it, besides its `Host`. */
export interface BackendRequest {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly string[];
  /** The whole body; undefined where there is none. */
  readonly body: Buffer | undefined;
}

/** The connections to one backend. No proxy variable is read, no redirect followed, nothing repeated. */
export class Backend {
  readonly #pool: Pool;

  constructor({ origin }: BackendOrigin, limits: EdgeLimits) {
    this.#pool = new Pool(origin, {
      connections: limits.backendConnectionCount,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: limits.dialTimeoutMs },
      headersTimeout: limits.backendHeadTimeoutMs,
      bodyTimeout: limits.backendIdleTimeoutMs,
    });
  }

  /** Sends a request once; the handler hears what comes of it, exactly one end or one error. */
  send(request: BackendRequest, handler: Dispatcher.DispatchHandler): void {
    this.#pool.dispatch(
      {
        path: request.target,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.fields as string[],
        body: request.body ?? null,
        // A router closes after each answer, also where the answer that it passes on does not say so: a request on a connection that
        // was kept could meet that end, and nobody would know what became of it.
        reset: true,
      },
      handler,
    );
  }

  /** How many requests are on the way, and how many wait for a connection. */
  get counts(): { running: number; waiting: number } {
    const { running, queued } = this.#pool.stats;
    return { running, waiting: queued };
  }

  /** Cuts all connections. Idempotent. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
