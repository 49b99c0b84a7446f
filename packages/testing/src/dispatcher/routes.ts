// From a call to an answer, without a fault (execution API, section 10).
import { setTimeout as pause } from "node:timers/promises";
import { type ExecutionRequest, isEligible } from "@cellkit/execution";
import type { Route } from "../core/call.ts";
import type { RequestHead } from "../core/request-head.ts";
import { isSameSecret } from "../core/secret.ts";
import { type Answer, refusal } from "../core/wire-answer.ts";
import { maxBodyBytes, prewarmLimitMs, readRequest, refusedAdmission, reservationOf } from "./admission.ts";
import type { ExecutionBook } from "./execution-book.ts";
import type { Identity } from "./hash.ts";
import { figuresOf, type ResolvedNode, reportOf } from "./node-figures.ts";

export interface RouteParts {
  readonly book: ExecutionBook;
  readonly node: () => ResolvedNode;
  readonly token: () => string | undefined;
  readonly prewarm: () => unknown;
  /** Another one in each life. */
  readonly processEpoch: string;
  readonly identity: Identity;
}

export class DispatcherRoutes {
  readonly book: ExecutionBook;
  readonly #parts: RouteParts;
  #isPrewarming = false;

  constructor(parts: RouteParts) {
    this.book = parts.book;
    this.#parts = parts;
  }

  /** @param hasWorker false: a submission is admitted, and then nobody is there to run it */
  async answer(
    { kind, id = "" }: Route,
    head: RequestHead,
    body: Uint8Array,
    hasWorker = true,
  ): Promise<Answer> {
    const { book } = this.#parts;
    if (kind === "health") return this.#health();
    const token = this.#parts.token();
    if (token === undefined) return refusal(503, "dispatcher credential unavailable");
    // Dispatchers take the scheme in exactly these letters.
    if (!isSameSecret(head.authorization ?? "", `Bearer ${token}`)) return refusal(401, "unauthorized");
    const isTooLong = head.contentLength > maxBodyBytes;
    switch (kind) {
      case "node":
        return this.#node();
      case "capabilities":
        return { status: 200, body: reportOf(this.#parts.node(), book.reserved) };
      case "submit":
        return isTooLong ? refusal(413, "request body exceeds 64 KiB") : book.submit(body, hasWorker);
      case "read":
        return book.read(id);
      case "audit":
        return book.audit(id);
      case "cancel":
        return book.cancel(id);
      case "prewarm":
        return isTooLong ? refusal(413, "prewarm request exceeds 64 KiB") : this.#prewarm(body);
      case "drain":
        return this.#drain(head.contentLength);
      default:
        return refusal(404, "not found");
    }
  }

  #health(): Answer {
    const node = figuresOf(this.#parts.node(), this.book.reserved);
    const body = {
      ok: isEligible(node) && !this.book.draining,
      kvm: node.kvm,
      mote_store: node.mote_store,
      tool_store: node.tool_store,
      node,
      ...this.#configured(),
    };
    return { status: 200, body };
  }

  #node(): Answer {
    const node = figuresOf(this.#parts.node(), this.book.reserved);
    return {
      status: 200,
      body: { node, warm: null, availability_is_advisory: true, ...this.#configured() },
    };
  }

  #configured() {
    const { memoryBytes, egressSlots } = this.#parts.node();
    return {
      preflight_only: true,
      configured_memory_bytes: memoryBytes,
      configured_egress_slots: egressSlots,
    };
  }

  #drain(lengthBytes: number): Answer {
    if (lengthBytes > 0) return refusal(400, "drain body must be empty");
    this.book.draining = true;
    const teardownConfirmed = this.book.reserved.cells === 0;
    return { status: teardownConfirmed ? 200 : 503, body: { teardownConfirmed } };
  }

  async #prewarm(body: Uint8Array): Promise<Answer> {
    const node = this.#parts.node();
    const read = readRequest(body, node);
    if (read.kind === "refused") {
      const isReadable = typeof read.answer.body === "object" && "problems" in (read.answer.body ?? {});
      if (read.answer.status === 400 && !isReadable) return refusal(400, "invalid prewarm request");
      return refusal(422, "the request is not one that could run");
    }
    const { request } = read;
    if (request.mote == null) return refusal(422, "a prewarm wants a mote, and no forge");
    if (this.#isPrewarming) return refusal(503, "prewarm already in progress");
    const refused = refusedAdmission(request, node, this.book.reserved, this.book.draining);
    if (refused !== undefined) {
      const { reason } = refused.body as { reason: string };
      return refusal(refused.status, "prewarm admission refused", { reason });
    }
    this.#isPrewarming = true;
    const release = this.book.reserve(reservationOf(request));
    try {
      return this.#observation(body, node.name, await this.#verify(request));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return refusal(422, "sealed prewarm verification refused", { reason });
    } finally {
      release();
      this.#isPrewarming = false;
    }
  }

  /** What the prewarm of the test comes to, in the time that a dispatcher gives it. */
  async #verify(request: ExecutionRequest): Promise<unknown> {
    const limitMs = prewarmLimitMs(request);
    const over = new AbortController();
    const late = pause(limitMs, undefined, { signal: over.signal, ref: false }).then(() => {
      throw new TypeError(`it was not done within ${limitMs} ms`);
    });
    try {
      return await Promise.race([this.#parts.prewarm(), late]);
    } finally {
      over.abort();
    }
  }

  #observation(request: Uint8Array, node: string, verification: unknown): Answer {
    const body = {
      apiVersion: "celln.dev/artifact-prewarm-v1",
      node,
      processEpoch: this.#parts.processEpoch,
      requestHash: this.#parts.identity(request),
      verification,
      warmState: "present-at-observation",
      validity: "observation-only",
      executionAuthorized: false,
      conformance: "not_checked",
      artifactReadiness: "not_checked",
    };
    return { status: 200, body };
  }
}
