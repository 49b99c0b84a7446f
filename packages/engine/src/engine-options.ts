// The engine's options, checked and completed once.
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import type { Bucket } from "@cellkit/bucket";
import { type EngineError, EngineOptionError } from "./errors.ts";

/** Where log lines go; a pino logger fits. */
export interface EngineLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** S3 credentials, for workerd. */
export interface EngineCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** What the engine tells its owner about, beside the promises it returns. */
export interface EngineEvents {
  /** A workerd serves (again). */
  ready?(): void;
  /** The workerd ended without being asked to; it is started again unless it was fenced. */
  exited?(detail: string): void;
  /** The engine ended itself since it cannot go on: its data directory is gone. Terminal; end the process (exit code 1). */
  failed?(error: EngineError): void;
  /** The workerd was fenced: it lost its lease and left. Terminal; end the process (exit code 3). */
  fenced?(detail: string): void;
}

/** Options of `createWorkerdEngine`. */
export interface WorkerdEngineOptions {
  /** The bucket, for our own records and leases; the same place as `bucketUrl`. Not closed by the engine. */
  readonly bucket: Bucket;
  /** `s3://bucket/prefix`, for workerd. */
  readonly bucketUrl: string;
  /** S3 endpoint URL for workerd; default the one of `AWS_ENDPOINT_URL` or AWS itself. */
  readonly endpoint?: string;
  /** Region for workerd; default `us-east-1`. */
  readonly region?: string;
  /**
   * Credentials for workerd, or where they come from: that is asked at each start of workerd and then every
   * `credentialsPollMs`, so that temporary ones are renewed. Default: the `AWS_*` variables of this process's environment.
   */
  readonly credentials?: EngineCredentials | (() => Promise<EngineCredentials>);
  /** How often credentials are asked for again; default 30000. */
  readonly credentialsPollMs?: number;
  /** Data directory of this node, used by no other node. */
  readonly directory: string;
  /**
   * `host:port` at which the other nodes' processes dial this one; what they send there comes out at `clusterPort`. A
   * function is asked once in a start, when the predecessor is ended and the bucket is known to be this engine's.
   */
  readonly advertise: string | ((signal: AbortSignal) => Promise<string>);
  /** The node's name, which `locateCell` of other nodes answers. */
  readonly node: string;
  readonly log: EngineLog;
  readonly events?: EngineEvents;
  /** File with the Worker's secrets: JSON or KEY=VALUE lines. */
  readonly secretsFile?: string;
  /** File whose variables win over the deployment's vars, and lose to secrets: JSON or KEY=VALUE lines. */
  readonly varsFile?: string;
  /** workerd's time from SIGTERM to exit; default 8000, at least 1000. */
  readonly stopTimeoutMs?: number;
  /** How long a start may take until the Worker answers; default 30000. */
  readonly startTimeoutMs?: number;
  /** A workerd that does not answer for so long is killed and started again; default 10000. */
  readonly watchdogMs?: number;
  /** How often the bucket is asked for a first deployment; default 1000, ±25 % at random. */
  readonly deploymentPollMs?: number;
  /** Divides workerd's lease and stop times, for tests; default 1. */
  readonly unsafeTimeDivisor?: number;
  /**
   * Header that carries `request.cf` as JSON on the public socket. Its name is a secret: whoever may send it is believed.
   * Default: a random name, which `engine.cfBlobHeader` tells.
   */
  readonly cfBlobHeader?: string;
  /** Path of a workerd; default the pinned one of npm. For tests: no version is checked. */
  readonly unsafeBinary?: string;
}

/** Options with every default in place. */
export type ResolvedOptions = Readonly<
  Required<Omit<WorkerdEngineOptions, OptionalName>> & Pick<WorkerdEngineOptions, OptionalName>
>;

/** Options without a default. */
type OptionalName = "endpoint" | "credentials" | "secretsFile" | "varsFile" | "unsafeBinary";

/**
 * Checks the options and puts the defaults in.
 *
 * @throws EngineOptionError (CELLKIT_ENGINE_OPTION)
 */
export function resolveOptions(options: WorkerdEngineOptions): ResolvedOptions {
  if (!options.bucketUrl.startsWith("s3://") && !options.bucketUrl.startsWith("gs://")) {
    throw new EngineOptionError(
      `a node cannot use the bucket ${options.bucketUrl}: serve a directory with \`cellkit bucket serve DIR\` ` +
        "and give its s3:// URL and endpoint",
    );
  }
  if (typeof options.advertise === "string") checkAddress(options.advertise);
  const resolved = {
    region: "us-east-1",
    events: {},
    stopTimeoutMs: 8000,
    startTimeoutMs: 30_000,
    watchdogMs: 10_000,
    deploymentPollMs: 1000,
    credentialsPollMs: 30_000,
    unsafeTimeDivisor: 1,
    cfBlobHeader: `cellkit-cf-${randomBytes(16).toString("hex")}`,
    ...options,
    directory: resolve(options.directory),
  };
  for (const name of ["stopTimeoutMs", "startTimeoutMs", "watchdogMs"] as const) {
    checkWhole(name, resolved[name], 1000, 3_600_000);
  }
  for (const name of ["deploymentPollMs", "credentialsPollMs"] as const) {
    checkWhole(name, resolved[name], 10, 3_600_000);
  }
  checkWhole("unsafeTimeDivisor", resolved.unsafeTimeDivisor, 1, 1000);
  return resolved;
}

/** @throws EngineOptionError (CELLKIT_ENGINE_OPTION) when peers cannot dial it */
export function checkAddress(advertise: string): void {
  if (!/^[^\s/]+:[1-9]\d{0,4}$/.test(advertise)) {
    throw new EngineOptionError(`advertise is ${advertise}, but must be host:port with a port other than 0`);
  }
}

function checkWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new EngineOptionError(`${name} is ${value}, but must be a whole number from ${least} to ${most}`);
}
