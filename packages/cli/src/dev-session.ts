// What `cellkit dev` does while it runs: adopt what changed, start again what died. One thing after the other, so that never
// two nodes are away at the same time.
import { setTimeout as pause } from "node:timers/promises";
import type { Bundle } from "@cellkit/deployment";
import { ProcessEndedError } from "./errors.ts";
import type { LocalFleet, LocalNode } from "./local-fleet.ts";
import { readProject } from "./project.ts";
import { ProjectWatcher } from "./project-watcher.ts";

/** Before a node that did not start is tried again. */
const retryMs = 2_000;

/** Whom a session serves. */
export interface DevSessionOptions {
  /** The project's directory, absolute. */
  project: string;
  /** What the fleet runs at the beginning. */
  bundle: Bundle;
  /** Where the fleet keeps its data: nothing that changes there is the project's. Absent: no file is watched. */
  watchWithout?: string;
  note: (line: string) => void;
  /** Ends the session. */
  signal: AbortSignal;
}

/** Keeps a fleet on the newest version of a project that works. Sees changes from its construction on. */
export class DevSession {
  readonly #options: DevSessionOptions;
  readonly #ended: string[] = [];
  readonly #watcher: ProjectWatcher | undefined;
  #bundle: Bundle;
  #changed: string | undefined;
  #failed = false;
  #error: Error | undefined;
  #wake: () => void = () => {};

  /** @throws WatchError (`CELLKIT_CLI_WATCH`) */
  constructor(options: DevSessionOptions) {
    const { project, bundle, watchWithout, signal } = options;
    this.#options = options;
    this.#bundle = bundle;
    if (watchWithout !== undefined) {
      this.#watcher = new ProjectWatcher(project, {
        ignore: watchWithout,
        onChange: (file) => {
          this.#changed = file;
          this.#wake();
        },
        onError: (error) => this.#fail(error),
      });
      this.#watcher.follow(bundle.inputs);
    }
    signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** A process ended by itself. */
  ended(process: string, reason: string): void {
    if (process === "bucket") this.#fail(new ProcessEndedError(process, reason));
    else {
      this.#options.note(`${process} ended (${reason}); it is started again`);
      this.#ended.push(process);
      this.#wake();
    }
  }

  /** Stops watching the project. */
  close(): void {
    this.#watcher?.close();
  }

  /** The session cannot go on: `run` rejects with this. */
  #fail(error: Error): void {
    this.#error ??= error;
    this.#wake();
  }

  /**
   * Works until the signal is aborted.
   * @throws ProcessEndedError (`CELLKIT_CLI_PROCESS_ENDED`) when the bucket is gone, WatchError (`CELLKIT_CLI_WATCH`)
   */
  async run(fleet: LocalFleet): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      if (this.#error !== undefined) throw this.#error;
      const ended = this.#ended.shift();
      const changed = this.#changed;
      if (ended !== undefined) await this.#revive(fleet, ended);
      else if (changed !== undefined) {
        this.#changed = undefined;
        await this.#adopt(fleet, changed);
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** Bundles, deploys and rolls; what does not build or does not load is told, and the version before goes on. */
  async #adopt(fleet: LocalFleet, file: string): Promise<void> {
    const { project, note, signal } = this.#options;
    try {
      const bundle = await readProject(project, signal);
      this.#watcher?.follow(bundle.inputs);
      if (bundle.version === this.#bundle.version) {
        if (this.#failed) note(`${file} changed: ${bundle.scriptName} ${bundle.version} runs already`);
        this.#failed = false;
        return;
      }
      note(`${file} changed`);
      for (const warning of bundle.warnings) note(`warning: ${warning}`);
      await fleet.deploy(bundle, { signal });
      await this.#roll(fleet, bundle);
    } catch (error) {
      if (signal.aborted) return;
      this.#failed = true;
      note(`${file} changed, but the version before goes on: ${messageOf(error)}`);
    }
  }

  /**
   * Restarts node after node, each drained first, so that a client that retries notices nothing. A lone node has nobody to hand
   * its cells to: it is killed, which is sooner over.
   */
  async #roll(fleet: LocalFleet, bundle: Bundle): Promise<void> {
    const { note, signal } = this.#options;
    const end = fleet.nodes.length === 1 ? "kill" : "drain";
    for (const [index, node] of fleet.nodes.entries()) {
      try {
        await fleet.restart(node, { end, signal });
      } catch (error) {
        if (signal.aborted) return;
        this.#failed = true;
        note(messageOf(error));
        note("the version before is put back");
        await fleet.deploy(this.#bundle, { signal });
        for (const each of fleet.nodes.slice(0, index + 1)) await this.#restartUntilServing(fleet, each);
        return;
      }
    }
    this.#bundle = bundle;
    this.#failed = false;
    note(`${bundle.scriptName} ${bundle.version} runs`);
  }

  async #revive(fleet: LocalFleet, name: string): Promise<void> {
    const node = fleet.nodes.find((each) => each.name === name);
    if (node?.process.process.exit !== undefined) await this.#restartUntilServing(fleet, node);
  }

  async #restartUntilServing(fleet: LocalFleet, node: LocalNode): Promise<void> {
    const { note, signal } = this.#options;
    while (!signal.aborted && this.#error === undefined) {
      try {
        await fleet.restart(node, { signal });
        return;
      } catch (error) {
        if (signal.aborted) return;
        note(`${messageOf(error)}; it is tried again in ${retryMs / 1000} s`);
        await pause(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
