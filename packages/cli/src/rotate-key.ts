// A rotation of the fleet key from its beginning, or from where an earlier walk left it, to its end: each step once all
// nodes have followed the one before.
import { setTimeout as sleep } from "node:timers/promises";
import {
  diagnoseNode,
  dropOldKey,
  type FleetStore,
  KeyRotationPendingError,
  type LaggingNode,
  laggingNodes,
  NodeDirectory,
  type NodeListing,
  promoteNextKey,
  publishNextKey,
  type RotationState,
  readRotation,
  requireFleetKeys,
  signWithNextKey,
} from "@cellkit/peer";
import { RotationWaitError } from "./errors.ts";

/** How a rotation is walked. */
export interface RotateKeyOptions {
  /** How long nodes may take to follow one step. */
  stepTimeoutMs: number;
  /** Nodes are looked at a second time after this, to see one that started meanwhile. */
  settleMs: number;
  /** How long the old key is accepted after the last node stopped signing with it. */
  graceMs: number;
  /** How often it is looked whether nodes have followed. @default 1_000 */
  lookMs?: number;
  /** Hears what is going on, a line at a time. */
  onProgress: (line: string) => void;
  signal?: AbortSignal | undefined;
}

/**
 * Rotates the key of a fleet; answers with where it is then. May be broken off at any moment and called again.
 * @throws RotationWaitError (`CELLKIT_CLI_ROTATION_WAIT`) when nodes do not follow in time, what the steps of @cellkit/peer
 *   throw, and the signal's reason
 */
export async function rotateKey(store: FleetStore, options: RotateKeyOptions): Promise<RotationState> {
  const walk = new Walk(store, options);
  let state = await readRotation(store, options);
  if (state.phase === "none") {
    options.onProgress(`step 1 of 4: a second key beside ${state.current}, to be accepted by all nodes`);
    state = await publishNextKey(store, options);
  } else
    options.onProgress(`a rotation from ${state.previous} to ${state.next} is at ${state.phase}: going on`);
  while (state.phase !== "none") {
    await walk.followed(state);
    state = await walk.step(state);
  }
  await walk.dropped(state);
  options.onProgress(`done: the fleet's key is ${state.current}, and no other is accepted`);
  return state;
}

class Walk {
  readonly #store: FleetStore;
  readonly #options: RotateKeyOptions;
  readonly #directory: NodeDirectory;

  constructor(store: FleetStore, options: RotateKeyOptions) {
    this.#store = store;
    this.#options = options;
    this.#directory = new NodeDirectory(store, { cacheMs: 0 });
  }

  /** Waits until every live node has done what the phase asks for, and still has a while later. */
  async followed(state: RotationState): Promise<void> {
    const { graceMs, settleMs, onProgress, signal } = this.#options;
    const nodes = await this.#until(state.phase, (listing) => laggingNodes(state, listing, Date.now()));
    onProgress(`${counted(nodes, "node")} followed`);
    const waitMs = state.phase === "retire" ? Math.max(graceMs, settleMs) : settleMs;
    if (state.phase === "retire")
      onProgress(`waiting ${Math.round(waitMs / 1_000)} s for callers that still sign with the old key`);
    await sleep(waitMs, undefined, { signal });
    if (state.phase === "accept") await this.#proved();
  }

  /** The next step; the library looks at the nodes once more and refuses it when one does not follow. */
  async step(state: RotationState): Promise<RotationState> {
    const { onProgress } = this.#options;
    const steps = {
      accept: { call: signWithNextKey, line: `step 2 of 4: ${state.next} signs` },
      sign: { call: promoteNextKey, line: `step 3 of 4: ${state.next} becomes the fleet's key` },
      retire: { call: dropOldKey, line: `step 4 of 4: ${state.previous} is refused from now on` },
    } as const;
    if (state.phase === "none") return state;
    const { call, line } = steps[state.phase];
    for (;;) {
      try {
        const next = await call(this.#store, await this.#list(), { signal: this.#options.signal });
        onProgress(line);
        return next;
      } catch (error) {
        // A node started between the look before and this one.
        if (!(error instanceof KeyRotationPendingError)) throw error;
        await this.followed(state);
      }
    }
  }

  /** After the end: no node accepts the old key any more. */
  async dropped({ current }: RotationState): Promise<void> {
    await this.#until("none", ({ live }) =>
      live.flatMap(({ node, peerKeys }) =>
        peerKeys?.accepts.length === 1 && peerKeys.signs === current
          ? []
          : [{ node, reason: "still accepts the old key" }],
      ),
    );
  }

  /** A record is a claim: each node that can be reached from here must take a request that the next key signed. */
  async #proved(): Promise<void> {
    const { signal, onProgress } = this.#options;
    const [, next] = (await requireFleetKeys(this.#store, { signal })).keys;
    if (next === undefined) return;
    const { live } = await this.#list();
    const refused: LaggingNode[] = [];
    let proved = 0;
    for (const record of live) {
      const { verdict, detail } = await diagnoseNode(record, { keys: [next], signal });
      if (verdict === "wrong-key")
        refused.push({ node: record.node, reason: "refuses what the next key signed" });
      else if (verdict === "ready" || verdict === "draining") proved += 1;
      else onProgress(`${record.node} could not be asked, so its record has to do: ${detail}`);
    }
    if (refused.length > 0) throw new RotationWaitError("accept", refused, 0);
    onProgress(`${counted(proved, "node")} took a request signed with the next key`);
  }

  #list(): Promise<NodeListing> {
    return this.#directory.list({ signal: this.#options.signal });
  }

  /** Waits until nobody lags, and answers how many live nodes there are. */
  async #until(
    phase: RotationState["phase"],
    lagging: (listing: NodeListing) => readonly LaggingNode[],
  ): Promise<number> {
    const { stepTimeoutMs, lookMs = 1_000, onProgress, signal } = this.#options;
    const deadlineMs = performance.now() + stepTimeoutMs;
    let said = "";
    for (;;) {
      const listing = await this.#list();
      const nodes = lagging(listing);
      if (nodes.length === 0) return listing.live.length;
      if (performance.now() > deadlineMs) throw new RotationWaitError(phase, nodes, stepTimeoutMs);
      const line = `waiting for ${nodes.map(({ node, reason }) => `${node} (${reason})`).join(", ")}`;
      if (line !== said) onProgress(line);
      said = line;
      await sleep(lookMs, undefined, { signal });
    }
  }
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
