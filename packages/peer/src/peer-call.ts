import type { CallResponse } from "./call-response.ts";

/** What is known of a call that came through a tunnel, beside the request itself. */
export interface PeerCallFacts {
  /** The cell: 1 to 255 of `A–Z a–z 0–9 _ - . : $`. */
  readonly scope: string;
  /** The name that the cell's id was made from, if the caller knows it. */
  readonly name: string | undefined;
  /** 32 hex digits, by which the call can be cancelled; undefined when the caller gave none. */
  readonly requestId: string | undefined;
  /** The caller's route was a guess: claim the cell only if there is room. */
  readonly capacityHandoff: boolean;
  /** Identity of the calling node. With one key for all, a node may claim to be another: this is no proof. */
  readonly source: string;
  /** The call travels in records: encrypted, authenticated, and cut if anything was changed. */
  readonly recorded: boolean;
}

/** One call of another node to a cell here. */
export class PeerCall implements PeerCallFacts {
  readonly scope: string;
  readonly name: string | undefined;
  readonly requestId: string | undefined;
  readonly capacityHandoff: boolean;
  readonly source: string;
  readonly recorded: boolean;
  readonly #response: CallResponse | undefined;
  #controller: AbortController | undefined;
  #isAborted = false;

  /** @param response undefined where there is none to answer stale with: after an upgrade */
  constructor(facts: PeerCallFacts, response?: CallResponse) {
    this.scope = facts.scope;
    this.name = facts.name;
    this.requestId = facts.requestId;
    this.capacityHandoff = facts.capacityHandoff;
    this.source = facts.source;
    this.recorded = facts.recorded;
    this.#response = response;
  }

  /** Aborted when the caller gave up: by cancelling, or by going away before it had the whole answer. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /**
   * Answers 409 with the stale marker: this node does not own the cell and nothing ran; the caller looks the owner up
   * again. A node never forwards a call that came from a node (spec §9). Only before the answer has begun.
   */
  answerStale(): void {
    this.#response?.answerStale("stale route");
  }

  /** Same for a call with `capacityHandoff` when there is no room. */
  answerNoRoom(): void {
    this.#response?.answerStale("capacity exhausted");
  }

  /** Tells the handler that the caller gave up. */
  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }
}
