// Cuts what goes to nodes whose record has expired: a node that was frozen does not close its connections.

import { NodeRecordError } from "./errors.ts";
import type { NodeDirectory } from "./node-directory.ts";

/** Something open to a node. */
export interface OpenToNodes {
  /** Nodes to which something is open. */
  nodes(): Iterable<string>;
  cut(node: string): void;
}

export class LapsedPeers {
  readonly #directory: NodeDirectory;
  readonly #open: OpenToNodes;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(directory: NodeDirectory, open: OpenToNodes, intervalMs: number) {
    this.#directory = directory;
    this.#open = open;
    this.#intervalMs = intervalMs;
  }

  /** To be called when something was opened; it stops by itself. */
  watch(): void {
    this.#timer ??= setInterval(() => void this.#look(), this.#intervalMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    const nodes = [...this.#open.nodes()];
    if (nodes.length === 0) return this.stop();
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const { live } = await this.#directory.list();
      const isLive = new Set(live.map(({ node }) => node));
      for (const node of nodes) {
        if (!isLive.has(node) && (await this.#hasLapsed(node))) this.#open.cut(node);
      }
    } catch {
      // A store that is away proves nothing about a node: calls in flight go on, and the next look may succeed.
    } finally {
      this.#isLooking = false;
    }
  }

  /** Asks for the one record: a listing may have left it out. */
  async #hasLapsed(node: string): Promise<boolean> {
    try {
      return (await this.#directory.findLive(node)) === undefined;
    } catch (error) {
      // Whoever wrote what cannot be read may well run.
      if (error instanceof NodeRecordError) return false;
      throw error;
    }
  }
}
