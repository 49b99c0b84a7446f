// The engine: one workerd at a time, from the first deployment to the drain. Rules that everything below keeps:
//  - a lease is ended only after its process was reaped (or is proven dead), always by a conditional write
//  - a fence and a stop are terminal; any other death is followed by another start, after a back-off
//  - a deployment is adopted when a node starts; later ones wait for the next start, unless none has loaded yet
import { type Deployment, readDeployment } from "@cellkit/deployment";
import { awaitDeployment } from "./await-deployment.ts";
import type { ChildExit } from "./child-process.ts";
import { closeCellSockets, openCell } from "./control-client.ts";
import { backOffMs } from "./core/back-off.ts";
import { classifyDeath } from "./core/child-death.ts";
import { planWorker } from "./core/worker-plan.ts";
import { renewCredentials } from "./credentials-file.ts";
import type { DataDirectory } from "./data-directory.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import { type ResolvedOptions, resolveOptions, type WorkerdEngineOptions } from "./engine-options.ts";
import { type DataDirectoryError, EngineStateError } from "./errors.ts";
import { handOver } from "./hand-over.ts";
import { type Launched, type LaunchInput, launch } from "./launch.ts";
import { expireLease } from "./lease.ts";
import type {
  CellPlace,
  ClosedCells,
  DeploymentName,
  DrainOptions,
  EngineSnapshot,
  EngineState,
  NodeEngine,
} from "./node-engine.ts";
import { pause } from "./pause.ts";
import { type LaunchParts, prepareLaunch } from "./prepare-launch.ts";
import { processSnapshot } from "./process-snapshot.ts";
import { staleAnswerMs, watchChild } from "./watch-child.ts";
import { watchDirectory } from "./watch-directory.ts";

const closeTimeoutMs = 5000;
/** A lease lapses by itself after 20 s; beyond that there is nothing left to end. */
const leaseEndTimeoutMs = 20_000;
/** A process that served for so long starts the count of crashes anew. */
const stableMs = 30_000;

/** A node engine on workerd's cluster mode. Starts nothing before `start()`. @throws EngineOptionError */
export function createWorkerdEngine(options: WorkerdEngineOptions): NodeEngine {
  return new WorkerdEngine(resolveOptions(options));
}

class WorkerdEngine implements NodeEngine {
  readonly #options: ResolvedOptions;
  readonly #ending = new AbortController();
  #state: EngineState = "stopped";
  #started = false;
  #launched: Launched | undefined;
  #serving: { launched: Launched; clusterPort: number; cellClasses: readonly string[] } | undefined;
  #deployment: DeploymentName | undefined;
  #directory: DataDirectory | undefined;
  #lock: DirectoryLock | undefined;
  #leaseEnded = true;
  #lastAnswerMs = 0;
  #restartCount = 0;
  #membership: string | undefined;
  readonly #background = new Set<Promise<unknown>>();

  constructor(options: ResolvedOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }
  get publicSocket(): string | undefined {
    return this.#serving?.launched.sockets.publicSocket;
  }
  get peerSocket(): string | undefined {
    return this.#serving?.launched.sockets.peerSocket;
  }
  get peerRpcSocket(): string | undefined {
    return this.#serving?.launched.sockets.peerRpcSocket;
  }
  get cfBlobHeader(): string {
    return this.#options.cfBlobHeader;
  }
  get clusterPort(): number | undefined {
    return this.#serving?.clusterPort;
  }
  get deployment(): DeploymentName | undefined {
    return this.#deployment;
  }
  get cellClasses(): readonly string[] {
    return this.#serving?.cellClasses ?? [];
  }

  async start(options: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#started) throw new EngineStateError("the engine was started before: create another one");
    this.#started = true;
    this.#state = "starting";
    const signals = [this.#ending.signal, ...(options.signal === undefined ? [] : [options.signal])];
    const signal = AbortSignal.any(signals);
    try {
      const parts = await prepareLaunch(this.#options, signal);
      this.#directory = parts.directory;
      this.#lock = parts.lock;
      this.#run(watchDirectory(parts.directory, this.#ending.signal).then((error) => this.#lose(error)));
      this.#run(renewCredentials(this.#options, parts.directory, this.#ending.signal));
      const deployment = await readDeployment(this.#options.bucket, undefined, { signal });
      if (deployment === undefined) {
        this.#state = "ready";
        const { signal } = this.#ending;
        const adopt = (found: Deployment) => this.#adopt(parts, found, signal);
        const refused = () => {
          this.#state = "failed";
        };
        this.#run(awaitDeployment(this.#options, { adopt, refused, signal }));
        return;
      }
      await this.#adopt(parts, deployment, signal);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  healthy(): boolean {
    if (this.#state !== "ready") return false;
    if (this.#deployment === undefined) return true;
    return this.#serving !== undefined && performance.now() - this.#lastAnswerMs < staleAnswerMs;
  }

  async locateCell(scope: string): Promise<CellPlace> {
    const serving = this.#serving;
    if (serving === undefined) throw new EngineStateError("nothing serves: wait until the engine is ready");
    return openCell(serving.launched.sockets.controlSocket, scope);
  }

  async closeCells(timeoutMs = closeTimeoutMs): Promise<ClosedCells> {
    const serving = this.#serving;
    if (serving === undefined) return { cells: 0, regularSockets: 0, failed: 0 };
    return closeCellSockets(serving.launched.sockets.controlSocket, timeoutMs);
  }

  async drain({ deadlineMs, idle = () => true }: DrainOptions): Promise<{ clean: boolean }> {
    if (this.#state === "fenced" || this.#state === "stopped") return { clean: false };
    const launched = this.#launched;
    const endMs = performance.now() + deadlineMs;
    this.#state = "draining";
    let clean = true;
    if (launched !== undefined) {
      await this.closeCells(Math.min(closeTimeoutMs, deadlineMs / 4)).catch((error: unknown) => {
        this.#options.log.warn({ error }, "the sockets of cells here could not be closed from inside");
      });
      const leftMs = Math.max(0, Math.round(endMs - performance.now()));
      clean = await handOver(launched, { bucket: this.#options.bucket, deadlineMs: leftMs, idle });
      if (!clean) this.#options.log.error({ deadlineMs }, "the cells could not be handed over in time");
    }
    await this.stop();
    return { clean };
  }

  async stop(): Promise<void> {
    if (this.#state !== "fenced") this.#state = "stopped";
    this.#ending.abort(new EngineStateError("the engine was stopped"));
    this.#launched?.child.kill("SIGKILL");
    // What is under way may start something that has to end, too.
    while (this.#background.size > 0) await Promise.all(this.#background);
    // The record of a lease that could not be ended stays: the next start on this directory ends it.
    if (this.#leaseEnded) await this.#directory?.deleteRecord();
    await this.#directory?.deleteConfig();
    await this.#lock?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async snapshot(): Promise<EngineSnapshot> {
    return {
      state: this.#state,
      deployment: this.#deployment,
      restartCount: this.#restartCount,
      membership: this.#membership,
      ...(await processSnapshot(this.#launched?.child.pid, this.#serving?.launched.sockets.controlSocket)),
    };
  }

  /** First start on a deployment: its failures are thrown. */
  async #adopt(parts: LaunchParts, deployment: Deployment, signal: AbortSignal): Promise<void> {
    const input = { ...parts, plan: planWorker(deployment) };
    const launched = await this.#launch(input, signal);
    const kill = (): void => launched.child.kill("SIGKILL");
    signal.addEventListener("abort", kill);
    try {
      await this.#serve(input, launched);
    } catch (error) {
      kill();
      await launched.exited;
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", kill);
    }
    this.#run(this.#keepServing(input, launched));
  }

  async #launch(input: LaunchInput, signal: AbortSignal): Promise<Launched> {
    signal.throwIfAborted();
    const launched = await launch(input, signal);
    this.#launched = launched;
    this.#run(launched.exited.then((exit) => this.#reaped(launched, exit)));
    // A stop that came while the process was being made did not see it.
    if (signal.aborted) launched.child.kill("SIGKILL");
    return launched;
  }

  async #serve({ plan }: LaunchInput, launched: Launched): Promise<void> {
    const clusterPort = await launched.started;
    this.#membership = await launched.leaseKey();
    this.#answered();
    this.#serving = { launched, clusterPort, cellClasses: plan.cells.map(({ className }) => className) };
    this.#deployment = { scriptName: plan.scriptName, version: plan.version };
    if (this.#state !== "draining" && this.#state !== "stopped") this.#state = "ready";
    const { log, events } = this.#options;
    log.info({ workerdPid: launched.child.pid, clusterPort, ...this.#deployment }, "workerd serves");
    events.ready?.();
  }

  /** Watches the process, and starts it again for as long as nobody stops the engine. */
  async #keepServing(input: LaunchInput, first: Launched): Promise<void> {
    const { log, events, watchdogMs } = this.#options;
    const { signal } = this.#ending;
    let launched = first;
    let crashCount = 0;
    for (;;) {
      const servedSinceMs = performance.now();
      const exit = await watchChild(launched, { watchdogMs, log, answered: () => this.#answered() });
      if (signal.aborted || this.#state === "draining") return;
      const death = classifyDeath(exit.code, exit.errorLines);
      if (death.kind === "fenced") {
        this.#state = "fenced";
        log.error({ detail: death.detail }, "workerd was fenced: it lost its lease and left the cluster");
        events.fenced?.(death.detail);
        return;
      }
      this.#state = "restarting";
      crashCount = performance.now() - servedSinceMs > stableMs ? 1 : crashCount + 1;
      const waitMs = backOffMs(crashCount, Math.random());
      log.error({ code: exit.code, signal: exit.signal, detail: death.detail, waitMs }, "workerd died");
      events.exited?.(death.detail);
      try {
        await pause(waitMs, signal);
        launched = await this.#launch(input, signal);
        this.#restartCount += 1;
        await this.#serve(input, launched);
      } catch (error) {
        // Alive but not serving is no better than dead.
        launched.child.kill("SIGKILL");
        if (signal.aborted) return;
        log.error({ error }, "workerd could not be started again");
      }
    }
  }

  /** Without its data directory a node can open no cell: it ends at once, so that its peers open them. */
  #lose(error: DataDirectoryError): void {
    if (this.#state === "draining") return;
    this.#options.log.error({ error }, "the data directory is lost: ending workerd");
    // What lies at its path now is not ours to clean.
    this.#directory = undefined;
    this.#options.events.failed?.(error);
    void this.stop();
  }

  #answered(): void {
    this.#lastAnswerMs = performance.now();
  }

  /** The process is gone, whatever for: nothing may be sent to it, and nobody need wait for its lease. */
  async #reaped(launched: Launched, exit: ChildExit): Promise<void> {
    const { bucket, log } = this.#options;
    if (this.#serving?.launched === launched) this.#serving = undefined;
    if (this.#launched === launched) this.#launched = undefined;
    this.#leaseEnded = false;
    try {
      const key = await launched.leaseKey();
      const patience = AbortSignal.timeout(leaseEndTimeoutMs);
      const end = key === undefined ? "gone" : await expireLease(bucket, key, patience);
      this.#leaseEnded = true;
      log.info({ lease: key, end, code: exit.code, signal: exit.signal }, "workerd ended");
    } catch (error) {
      log.warn({ error }, "the lease of the ended workerd could not be ended; it lapses by itself");
    }
  }

  /** Work that `stop()` waits for; its failures are its own business by then. */
  #run(work: Promise<unknown>): void {
    const settled = work.catch((error: unknown) => {
      if (!this.#ending.signal.aborted)
        this.#options.log.error({ error }, "the engine failed in the background");
    });
    this.#background.add(settled);
    void settled.then(() => this.#background.delete(settled));
  }
}
