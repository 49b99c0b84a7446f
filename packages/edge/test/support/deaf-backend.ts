// A listener that never accepts: its thread listens and then stands still, and what the system accepts on its behalf is used up.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { until } from "../../../../tools/test-support/until.ts";
import { type BackendOrigin, parseBackendOrigin } from "../../src/core/backend-origin.ts";

const thread = `
  const { parentPort } = require("node:worker_threads");
  const server = require("node:net").createServer();
  server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

/** More than the system accepts for a listener with a backlog of 1 (Linux: two). */
const fillerCount = 16;

/** Where every dial gets no answer at all. */
export class DeafBackend {
  readonly origin: BackendOrigin;
  readonly #worker: Worker;
  readonly #fillers: readonly Socket[];

  private constructor(origin: BackendOrigin, worker: Worker, fillers: readonly Socket[]) {
    this.origin = origin;
    this.#worker = worker;
    this.#fillers = fillers;
  }

  static async open(): Promise<DeafBackend> {
    const worker = new Worker(thread, { eval: true });
    const [port] = (await once(worker, "message")) as [number];
    let accepted = 0;
    // They ask in this order, and before everybody else: once one has been accepted, those that the system takes no more are known.
    const fillers = Array.from({ length: fillerCount }, () =>
      connect({ host: "127.0.0.1", port })
        .on("error", () => undefined)
        .on("connect", () => {
          accepted += 1;
        }),
    );
    await until("a connection that is accepted", () => accepted > 0);
    return new DeafBackend(parseBackendOrigin(`http://127.0.0.1:${port}`) as BackendOrigin, worker, fillers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#fillers) socket.destroy();
    await this.#worker.terminate();
  }
}
