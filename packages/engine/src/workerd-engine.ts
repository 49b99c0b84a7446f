// The engine: one workerd at a time, from the first deployment to the drain. Rules that everything below keeps:
//  - a lease is ended only after its process was reaped (or is proven dead), always by a conditional write
//  - a fence and a stop are terminal; any other death is followed by another start, after a back-off
//  - a deployment is adopted when a node starts; later ones wait for the next start, unless none has loaded yet
import { type Deployment, readCurrent, readDeployment } from "@cellkit/deployment";
import type { ChildExit } from "./child-process.ts";
import { closeCellSockets, type EntryState, readEntryState } from "./control-client.ts";
import { backOffMs } from "./core/back-off.ts";
import { classifyDeath } from "./core/child-death.ts";
import { planWorker } from "./core/worker-plan.ts";
import { type DataDirectory, openDataDirectory } from "./data-directory.ts";
import { type ResolvedOptions, resolveOptions, type WorkerdEngineOptions } from "./engine-options.ts";
import { EngineStateError, WorkerLoadError } from "./errors.ts";
import { type Launched, type LaunchInput, launch } from "./launch.ts";
import { expireLease, readLease } from "./lease.ts";
import type {
  ClosedCells,
  DeploymentName,
  DrainOptions,
  EngineSnapshot,
  EngineState,
  NodeEngine,
} from "./node-engine.ts";
import { pause } from "./pause.ts";
import { endPredecessor } from "./predecessor.ts";
import { residentBytes } from "./process-identity.ts";
import { readSecrets } from "./secrets-file.ts";
import { claimStorage, clusterKey } from "./storage-records.ts";
import { readWorkerRuntime } from "./worker-runtime.ts";
import { findWorkerd } from "./workerd-binary.ts";

const closeCode = 1012;
const closeReason = "node draining";
const watchMs = 1000;
const answerTimeoutMs = 1000;
const closeTimeoutMs = 5000;
const leasePollMs = 25;
/** After the lease is gone, calls of peers that waited here are still being sent back to be sent on. */
const lastWordsMs = 1000;
/** A lease lapses by itself after 20 s; beyond that there is nothing left to end. */
const leaseEndTimeoutMs = 20_000;
/** A process that served for so long starts the count of crashes anew. */
const stableMs = 30_000;

/** A node engine on workerd's cluster mode. Starts nothing before `start()`. @throws EngineOptionError */
export function createWorkerdEngine(options: WorkerdEngineOptions): NodeEngine {
  return new WorkerdEngine(resolveOptions(options));
}

type Parts = Omit<LaunchInput, "plan">;

class WorkerdEngine implements NodeEngine {
  readonly #options: ResolvedOptions;
  readonly #ending = new AbortController();
  #state: EngineState = "stopped";
  #started = false;
  #directory: DataDirectory | undefined;
  #launched: Launched | undefined;
  #serving: { launched: Launched; clusterPort: number; sinceMs: number } | undefined;
  #deployment: DeploymentName | undefined;
  #lastAnswerMs = 0;
  #restartCount = 0;
  #membership: string | undefined;
  #background: Promise<unknown>[] = [];

  constructor(options: ResolvedOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }
  get publicSocket(): string | undefined {
    return this.#serving?.launched.publicSocket;
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

  async start(options: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#started) throw new EngineStateError("the engine was started before: create another one");
    this.#started = true;
    this.#state = "starting";
    const signals = [this.#ending.signal, ...(options.signal === undefined ? [] : [options.signal])];
    const signal = AbortSignal.any(signals);
    try {
      const parts = await this.#prepare(signal);
      const deployment = await readDeployment(this.#options.bucket, undefined, { signal });
      if (deployment === undefined) {
        this.#state = "ready";
        this.#run(this.#awaitDeployment(parts, undefined));
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
    return (
      this.#serving !== undefined && performance.now() - this.#lastAnswerMs < watchMs + 2 * answerTimeoutMs
    );
  }

  closeCells(): Promise<ClosedCells> {
    return this.#closeCells(closeTimeoutMs);
  }

  async drain({ deadlineMs, idle = () => true }: DrainOptions): Promise<{ clean: boolean }> {
    if (this.#state === "fenced" || this.#state === "stopped") return { clean: false };
    const launched = this.#launched;
    const endMs = performance.now() + deadlineMs;
    this.#state = "draining";
    let clean = true;
    if (launched !== undefined) {
      await this.#closeCells(Math.min(closeTimeoutMs, deadlineMs / 4)).catch((error: unknown) => {
        this.#options.log.warn({ error }, "the sockets of cells here could not be closed from inside");
      });
      clean = await this.#handOver(launched, Math.max(0, Math.round(endMs - performance.now())), idle);
    }
    await this.stop();
    return { clean };
  }

  async stop(): Promise<void> {
    if (this.#state !== "fenced") this.#state = "stopped";
    this.#ending.abort(new EngineStateError("the engine was stopped"));
    const launched = this.#launched;
    launched?.child.kill("SIGKILL");
    await launched?.exited;
    await Promise.all(this.#background);
    await this.#directory?.deleteRecord();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async snapshot(): Promise<EngineSnapshot> {
    const serving = this.#serving;
    const [entry, rssBytes] = await Promise.all([
      serving === undefined ? undefined : this.#ask(serving.launched).catch(() => undefined),
      this.#launched === undefined ? undefined : residentBytes(this.#launched.child.pid),
    ]);
    return {
      state: this.#state,
      deployment: this.#deployment,
      restartCount: this.#restartCount,
      membership: this.#membership,
      pid: this.#launched?.child.pid,
      rssBytes,
      occupied: entry?.cells,
      exactCells: entry?.exact,
      residents: entry?.residents,
      openedCells: entry?.opened,
      regularSockets: entry?.regularSockets,
      requests: entry?.requests,
      requestsInFlight: entry?.inFlight,
      requestsFailed: entry?.failed,
    };
  }

  async #closeCells(timeoutMs: number): Promise<ClosedCells> {
    const serving = this.#serving;
    if (serving === undefined) return { cells: 0, regularSockets: 0, failed: 0 };
    const { cells, regular, failed } = await closeCellSockets(serving.launched.controlSocket, {
      code: closeCode,
      reason: closeReason,
      timeoutMs,
    });
    return { cells, regularSockets: regular, failed };
  }

  async #prepare(signal: AbortSignal): Promise<Parts> {
    const { bucket, log, secretsFile, unsafeBinary } = this.#options;
    const binary = unsafeBinary ?? (await findWorkerd());
    const secrets = secretsFile === undefined ? {} : await readSecrets(secretsFile);
    const directory = await openDataDirectory(this.#options.directory);
    await claimStorage(bucket, signal);
    await endPredecessor(directory, bucket, log, signal);
    this.#directory = directory;
    const key = await clusterKey(bucket, signal);
    return {
      options: this.#options,
      directory,
      binary,
      runtime: await readWorkerRuntime(),
      clusterKey: key,
      secrets,
    };
  }

  /** Polls until there is a deployment other than `failed`, and adopts it; goes on when it does not load either. */
  async #awaitDeployment(parts: Parts, failed: string | undefined): Promise<void> {
    const { signal } = this.#ending;
    const { bucket, log, deploymentPollMs } = this.#options;
    let refused = failed;
    while (!signal.aborted) {
      await pause(deploymentPollMs * (0.75 + Math.random() / 2), signal);
      try {
        const pointer = await readCurrent(bucket, { signal });
        if (pointer === undefined || pointer.version === refused) continue;
        const deployment = await readDeployment(bucket, pointer, { signal });
        if (deployment === undefined) continue;
        refused = deployment.version;
        await this.#adopt(parts, deployment, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof WorkerLoadError) this.#state = "failed";
        log.error({ error }, "the deployment could not be started; waiting for another one");
      }
    }
  }

  /** First start on a deployment: its failures are thrown. */
  async #adopt(parts: Parts, deployment: Deployment, signal: AbortSignal): Promise<void> {
    const input = { ...parts, plan: planWorker(deployment) };
    const launched = await this.#launch(input, signal);
    try {
      await this.#serve(input, launched);
    } catch (error) {
      launched.child.kill("SIGKILL");
      await launched.exited;
      throw error;
    }
    this.#run(this.#keepServing(input, launched));
  }

  async #launch(input: LaunchInput, signal: AbortSignal): Promise<Launched> {
    signal.throwIfAborted();
    const launched = await launch(input);
    this.#launched = launched;
    this.#run(launched.exited.then((exit) => this.#reaped(launched, exit)));
    // A stop that came while the process was being made did not see it.
    if (signal.aborted) launched.child.kill("SIGKILL");
    return launched;
  }

  async #serve({ plan }: LaunchInput, launched: Launched): Promise<void> {
    const clusterPort = await launched.started;
    this.#membership = await launched.leaseKey();
    this.#lastAnswerMs = performance.now();
    this.#serving = { launched, clusterPort, sinceMs: performance.now() };
    this.#deployment = { scriptName: plan.scriptName, version: plan.version };
    if (this.#state !== "draining" && this.#state !== "stopped") this.#state = "ready";
    this.#options.log.info({ pid: launched.child.pid, clusterPort, ...this.#deployment }, "workerd serves");
    this.#options.events.ready?.();
  }

  /** Watches the process, and starts it again for as long as nobody stops the engine. */
  async #keepServing(input: LaunchInput, first: Launched): Promise<void> {
    const { log, events } = this.#options;
    const { signal } = this.#ending;
    let launched = first;
    let crashCount = 0;
    for (;;) {
      const servedSinceMs = performance.now();
      const exit = await this.#watch(launched);
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
        if (signal.aborted) return;
        log.error({ error }, "workerd could not be started again");
      }
    }
  }

  /** Asks the entry module every second; kills a process that answers nothing for `watchdogMs`. */
  async #watch(launched: Launched): Promise<ChildExit> {
    let exit: ChildExit | undefined;
    void launched.exited.then((value) => {
      exit = value;
    });
    while (exit === undefined) {
      await Promise.race([launched.exited, pause(watchMs)]);
      if (exit !== undefined) break;
      const answered = await this.#ask(launched).then(
        () => true,
        () => false,
      );
      if (answered) this.#lastAnswerMs = performance.now();
      else if (performance.now() - this.#lastAnswerMs > this.#options.watchdogMs) {
        this.#options.log.error({ pid: launched.child.pid }, "workerd does not answer: ending it");
        launched.child.kill("SIGKILL");
        await launched.exited;
      }
    }
    return launched.exited;
  }

  #ask(launched: Launched): Promise<EntryState> {
    return readEntryState(launched.controlSocket, answerTimeoutMs);
  }

  /** The process is gone, whatever for: nothing may be sent to it, and nobody need wait for its lease. */
  async #reaped(launched: Launched, exit: ChildExit): Promise<void> {
    if (this.#serving?.launched === launched) this.#serving = undefined;
    if (this.#launched === launched) this.#launched = undefined;
    try {
      const key = await launched.leaseKey();
      if (key === undefined) return;
      const end = await expireLease(this.#options.bucket, key, AbortSignal.timeout(leaseEndTimeoutMs));
      this.#options.log.info({ lease: key, end, code: exit.code, signal: exit.signal }, "workerd ended");
    } catch (error) {
      this.#options.log.warn(
        { error },
        "the lease of the ended workerd could not be ended; it lapses by itself",
      );
    }
  }

  async #handOver(launched: Launched, deadlineMs: number, idle: () => boolean): Promise<boolean> {
    const deadline = AbortSignal.timeout(Math.ceil(deadlineMs));
    let reaped = false;
    void launched.exited.then(() => {
      reaped = true;
    });
    launched.child.kill("SIGTERM");
    const key = await launched.leaseKey().catch(() => undefined);
    while (!reaped && !deadline.aborted) {
      const left = await this.#leftCluster(key, deadline);
      if (left && idle()) {
        await Promise.race([launched.exited, pause(lastWordsMs)]);
        launched.child.kill("SIGKILL");
        await launched.exited;
        return true;
      }
      await Promise.race([launched.exited, pause(leasePollMs)]);
    }
    if (reaped) return (await launched.exited).code === 0;
    this.#options.log.error({ deadlineMs }, "the drain ran out of time: ending workerd");
    launched.child.kill("SIGKILL");
    await launched.exited;
    return false;
  }

  async #leftCluster(key: string | undefined, signal: AbortSignal): Promise<boolean> {
    if (key === undefined) return false;
    try {
      return (await readLease(this.#options.bucket, key, signal)) === undefined;
    } catch {
      // A bucket that does not answer proves nothing; workerd's own time to stop bounds this.
      return false;
    }
  }

  /** Work that `stop()` waits for; its failures are its own business by then. */
  #run(work: Promise<unknown>): void {
    const settled = work.catch((error: unknown) => {
      if (!this.#ending.signal.aborted)
        this.#options.log.error({ error }, "the engine failed in the background");
    });
    this.#background.push(settled);
    void settled.then(() => {
      this.#background = this.#background.filter((other) => other !== settled);
    });
  }
}
