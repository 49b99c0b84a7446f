// Starts one workerd on one deployment and waits until it serves. What comes after (watching, restarting, draining) is the
// engine's.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChildExit, startChild, type WorkerdChild } from "./child-process.ts";
import { clusterReady, readEntryState } from "./control-client.ts";
import { classifyDeath } from "./core/child-death.ts";
import type { WorkerPlan } from "./core/worker-plan.ts";
import { renderWorkerdConfig } from "./core/workerd-config.ts";
import { attempt, type DataDirectory } from "./data-directory.ts";
import type { ResolvedOptions } from "./engine-options.ts";
import { DataDirectoryError, WorkerdStartError, WorkerLoadError } from "./errors.ts";
import { findLease, listLeases } from "./lease.ts";
import { pause } from "./pause.ts";
import { identifyProcess } from "./process-identity.ts";

/** What a launch needs beside the options. */
export interface LaunchInput {
  readonly options: ResolvedOptions;
  readonly directory: DataDirectory;
  readonly binary: string;
  readonly runtime: string;
  readonly plan: WorkerPlan;
  readonly clusterKey: string;
  readonly secrets: Readonly<Record<string, string>>;
}

/** A workerd that was started; `started` says when it serves. */
export interface Launched {
  readonly child: WorkerdChild;
  readonly publicSocket: string;
  readonly controlSocket: string;
  /** The cluster port, once it serves; rejects with what went wrong. */
  readonly started: Promise<number>;
  /** Resolves after the process is reaped and its sockets are removed. */
  readonly exited: Promise<ChildExit>;
  /** The key of the process's lease, looked up when it is not known yet. */
  leaseKey(): Promise<string | undefined>;
}

/** The longest path of a unix socket that every system takes, with its closing zero byte. */
const socketPathBytes = 104;
const readyPollMs = 15;
const answerTimeoutMs = 1000;

/**
 * Starts workerd.
 *
 * @throws DataDirectoryError, WorkerdStartError, errors of the bucket
 */
export async function launch(input: LaunchInput): Promise<Launched> {
  const { options, directory } = input;
  const sockets = await mkdtemp(join(tmpdir(), "cellkit-"));
  const publicSocket = join(sockets, "public");
  const controlSocket = join(sockets, "control");
  if (Buffer.byteLength(controlSocket) >= socketPathBytes) {
    await rm(sockets, { recursive: true, force: true });
    throw new DataDirectoryError(
      `the temporary directory ${tmpdir()} is too long for a unix socket: set TMPDIR to a short path`,
    );
  }
  const configFile = await attempt(options.directory, () =>
    writeConfig(input, { publicSocket, controlSocket }),
  ).catch(async (error: unknown) => {
    await rm(sockets, { recursive: true, force: true });
    throw error;
  });
  const before = await listLeases(options.bucket);
  const child = await startChild({
    binary: input.binary,
    configFile,
    directory: directory.config,
    environment: childEnvironment(options),
    onLine: (stream, line) => options.log[stream === "stderr" ? "warn" : "info"]({ stream }, line),
  });
  const exited = child.exited.then(async (exit) => {
    await rm(sockets, { recursive: true, force: true });
    return exit;
  });
  let leaseKey: string | undefined;
  const findOwnLease = async (): Promise<string | undefined> => {
    leaseKey ??= await findLease(options.bucket, options.advertise, before);
    return leaseKey;
  };
  await record(input, child.pid, undefined);
  const started = (async () => {
    const died = child.exited.then((exit) => {
      throw startFailure(input.plan, exit);
    });
    // Handled by the race below; this keeps a later end of the process from being an unhandled rejection.
    died.catch(() => undefined);
    const port = await Promise.race([died, waitUntilServing(child, controlSocket, options.startTimeoutMs)]);
    await record(input, child.pid, await Promise.race([died, findOwnLease()]));
    return port;
  })();
  started.catch(() => undefined);
  return { child, publicSocket, controlSocket, started, exited, leaseKey: findOwnLease };
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
    for (;;) {
      const answered = await readEntryState(controlSocket, answerTimeoutMs).then(
        () => true,
        () => false,
      );
      if (answered) return port;
      await pause(readyPollMs, deadline);
    }
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
  { options, directory }: LaunchInput,
  pid: number,
  leaseKey: string | undefined,
): Promise<void> {
  const [owner, child] = [await identifyProcess(process.pid), await identifyProcess(pid)];
  // Without /proc nothing can be proven at the next start, so nothing is recorded.
  if (owner === undefined || child === undefined) return;
  const { advertise } = options;
  await directory.writeRecord({ owner, child, advertise, ...(leaseKey === undefined ? {} : { leaseKey }) });
}

async function writeConfig(
  { options, directory, plan, runtime, clusterKey, secrets }: LaunchInput,
  sockets: { publicSocket: string; controlSocket: string },
): Promise<string> {
  await rm(directory.config, { recursive: true, force: true });
  await mkdir(directory.config, { mode: 0o700 });
  const write = (name: string, content: string | Uint8Array): Promise<void> =>
    writeFile(join(directory.config, name), content, { mode: 0o600 });
  const bucketOptions = [`aws_region=${options.region}`];
  if (options.endpoint !== undefined) bucketOptions.push(`aws_endpoint=${options.endpoint}`);
  if (options.credentials !== undefined) {
    const { accessKeyId, secretAccessKey, sessionToken } = options.credentials;
    const lines = [`AWS_ACCESS_KEY_ID=${accessKeyId}`, `AWS_SECRET_ACCESS_KEY=${secretAccessKey}`];
    if (sessionToken !== undefined) lines.push(`AWS_SESSION_TOKEN=${sessionToken}`);
    await write("credentials", `${lines.join("\n")}\n`);
    bucketOptions.push(`aws_credentials_file=${join(directory.config, "credentials")}`);
  }
  const rendered = renderWorkerdConfig(
    plan,
    {
      ...sockets,
      cfBlobHeader: options.cfBlobHeader,
      storageDirectory: directory.cells,
      bucketUrl: options.bucketUrl,
      bucketOptions: options.bucketUrl.startsWith("gs://") ? [] : bucketOptions,
      advertise: options.advertise,
      clusterKey,
      stopTimeoutMs: options.stopTimeoutMs,
      unsafeTimeDivisor: options.unsafeTimeDivisor,
      secrets,
    },
    runtime,
  );
  for (const { name, bytes } of rendered.files) await write(name, bytes);
  await write("config.capnp", rendered.config);
  return join(directory.config, "config.capnp");
}

/** Only what workerd itself reads; nothing of celld's own configuration. */
function childEnvironment({ endpoint }: ResolvedOptions): NodeJS.ProcessEnv {
  const passed =
    /^(PATH|HOME|TMPDIR|TZ|LANG|LC_.*|SSL_CERT_.*|AWS_.*|GOOGLE_.*|GCE_.*|KUBERNETES_SERVICE_HOST|STORAGE_EMULATOR_HOST)$/;
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => passed.test(name)));
  // workerd refuses an endpoint without TLS otherwise; whoever configured http:// has decided that.
  if (endpoint?.startsWith("http://") === true) environment["AWS_ALLOW_HTTP"] = "true";
  return environment;
}
