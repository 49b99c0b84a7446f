// Starts one workerd on one deployment and waits until it serves. What comes after (watching, restarting, draining) is the
// engine's.
import { childEnvironment, writeConfig } from "./child-files.ts";
import { type ChildExit, startChild, type WorkerdChild } from "./child-process.ts";
import { clusterReady, entryAnswers } from "./control-client.ts";
import { classifyDeath } from "./core/child-death.ts";
import type { WorkerPlan } from "./core/worker-plan.ts";
import type { WorkerRuntime } from "./core/workerd-config.ts";
import type { DataDirectory } from "./data-directory.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import type { ResolvedOptions } from "./engine-options.ts";
import { WorkerdStartError, WorkerLoadError } from "./errors.ts";
import { findLease, listLeases } from "./lease.ts";
import { pause } from "./pause.ts";
import { identifyProcess } from "./process-identity.ts";
import { makeSocketDirectory, type SocketDirectory } from "./socket-directory.ts";

/** What a launch needs beside the options. */
export interface LaunchInput {
  readonly options: ResolvedOptions;
  /** `host:port` of this process, as its lease tells it. */
  readonly advertise: string;
  readonly directory: DataDirectory;
  /** Held by this process; workerd inherits it. */
  readonly lock: DirectoryLock | undefined;
  readonly binary: string;
  readonly runtime: WorkerRuntime;
  readonly plan: WorkerPlan;
  readonly clusterKey: string;
  readonly vars: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** A workerd that was started; `started` says when it serves. */
export interface Launched {
  readonly child: WorkerdChild;
  readonly sockets: Omit<SocketDirectory, "path" | "remove">;
  /** The cluster port, once it serves; rejects with what went wrong. */
  readonly started: Promise<number>;
  /** Resolves after the process is reaped and its sockets are removed. */
  readonly exited: Promise<ChildExit>;
  /** The key of the process's lease, looked up when it is not known yet. */
  leaseKey(): Promise<string | undefined>;
}

const readyPollMs = 15;
const answerTimeoutMs = 1000;

/**
 * Starts workerd.
 *
 * @throws DataDirectoryError, WorkerdStartError, errors of the bucket
 */
export async function launch(input: LaunchInput, signal: AbortSignal): Promise<Launched> {
  const { options, directory } = input;
  const sockets = await makeSocketDirectory(options.directory);
  const { child, before } = await (async () => {
    const configFile = await writeConfig(input, sockets);
    const before = await listLeases(options.bucket, signal);
    const child = await startChild({
      binary: input.binary,
      configFile,
      directory: directory.config,
      lockFd: input.lock?.fd,
      environment: childEnvironment(options),
      onLine: (stream, line) => options.log[stream === "stderr" ? "warn" : "info"]({ stream }, line),
    });
    return { child, before };
  })().catch(async (error: unknown) => {
    await sockets.remove();
    throw error;
  });
  const exited = child.exited.then(async (exit) => {
    await sockets.remove();
    return exit;
  });
  let leaseKey: string | undefined;
  const findOwnLease = async (): Promise<string | undefined> => {
    leaseKey ??= await findLease(options.bucket, input.advertise, before);
    return leaseKey;
  };
  await record(input, { pid: child.pid, sockets: sockets.path, leaseKey });
  const started = (async () => {
    const died = child.exited.then((exit) => {
      throw startFailure(input.plan, exit);
    });
    // Handled by the race below; this keeps a later end of the process from being an unhandled rejection.
    died.catch(() => undefined);
    const port = await Promise.race([
      died,
      waitUntilServing(child, sockets.controlSocket, options.startTimeoutMs),
    ]);
    await Promise.race([died, findOwnLease()]);
    await record(input, { pid: child.pid, sockets: sockets.path, leaseKey });
    return port;
  })();
  started.catch(() => undefined);
  return { child, sockets, started, exited, leaseKey: findOwnLease };
}

async function waitUntilServing(
  child: WorkerdChild,
  controlSocket: string,
  timeoutMs: number,
): Promise<number> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const late = new Promise<never>((_, reject) => {
    deadline.addEventListener("abort", () => {
      reject(new WorkerdStartError(`workerd did not serve within ${timeoutMs} ms: see its output above`));
    });
  });
  const serve = async (): Promise<number> => {
    const port = await child.clusterPort;
    while (!(await clusterReady(port, answerTimeoutMs))) await pause(readyPollMs, deadline);
    while (!(await entryAnswers(controlSocket, answerTimeoutMs))) await pause(readyPollMs, deadline);
    return port;
  };
  return await Promise.race([serve(), late]);
}

function startFailure(plan: WorkerPlan, exit: ChildExit): Error {
  const death = classifyDeath(exit.code, exit.errorLines);
  if (death.kind === "load") return new WorkerLoadError(plan.scriptName, death.detail);
  const how = exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
  return new WorkerdStartError(`workerd ended while it started (${how}): ${death.detail}`);
}

async function record(
  { advertise, directory, lock }: LaunchInput,
  { pid, sockets, leaseKey }: { pid: number; sockets: string; leaseKey: string | undefined },
): Promise<void> {
  const [owner, child] = [await identifyProcess(process.pid), await identifyProcess(pid)];
  // Without /proc nothing can be proven at the next start, so nothing is recorded.
  if (owner === undefined || child === undefined) return;
  await directory.writeRecord({
    owner,
    child,
    advertise,
    sockets,
    ...(lock === undefined ? {} : { lock: lock.file }),
    ...(leaseKey === undefined ? {} : { leaseKey }),
  });
}
