/** What a bucket holds of deployments: read with bounds, parsed, and checked against the manifest's digests. */
import type { Bucket, CallOptions, ObjectTooLargeError, StoredObject } from "@cellkit/bucket";
import { fleetPointerKey, manifestKey, moduleKey } from "./core/layout.ts";
import { maxManifestBytes, maxPointerBytes, maxTotalBytes } from "./core/limits.ts";
import type { Manifest } from "./core/manifest.ts";
import { type Module, moduleDigest } from "./core/modules.ts";
import { type Pointer, parseManifest, parsePointer, type Stored } from "./core/stored.ts";
import { InvalidDeploymentError, UnsupportedDeploymentError } from "./errors.ts";

/** A deployment as a node runs it: everything read and verified. */
export interface Deployment {
  readonly scriptName: string;
  /** 16 hexadecimal digits. */
  readonly version: string;
  readonly manifest: Manifest;
  /** In the order of the manifest; the main module is the one that `manifest.main_module` names. */
  readonly modules: readonly Module[];
}

/** A pointer with the ETag that a conditional write needs. */
export interface StoredPointer {
  readonly pointer: Pointer;
  readonly etag: string;
}

/** The value of a parsed object, or the error that says why there is none. */
function valueOrThrow<T>(key: string, stored: Stored<T>): T {
  if (stored.kind === "invalid") throw new InvalidDeploymentError(key, stored.problem);
  if (stored.kind === "unsupported") throw new UnsupportedDeploymentError(key, stored.unsupported);
  return stored.value;
}

/** Reads an object that has at most so many bytes; undefined when there is none. */
async function readBounded(
  bucket: Bucket,
  key: string,
  maxBytes: number,
  { signal }: CallOptions,
): Promise<StoredObject | undefined> {
  try {
    return await bucket.get(key, { signal, maxBytes });
  } catch (error) {
    if ((error as Partial<ObjectTooLargeError>).code !== "CELLKIT_BUCKET_TOO_LARGE") throw error;
    throw new InvalidDeploymentError(key, `it has more than ${maxBytes} bytes`, { cause: error });
  }
}

/** Reads one pointer, or undefined where there is none. */
export async function readPointer(
  bucket: Bucket,
  key: string,
  waiting: CallOptions = {},
): Promise<StoredPointer | undefined> {
  const found = await readBounded(bucket, key, maxPointerBytes, waiting);
  if (found === undefined) return undefined;
  return { pointer: valueOrThrow(key, parsePointer(found.body)), etag: found.etag };
}

/**
 * Which deployment the fleet runs: `deploy/current.json`, or undefined before the first deployment.
 *
 * @throws InvalidDeploymentError (`CELLKIT_DEPLOYMENT_INVALID`), UnsupportedDeploymentError
 * (`CELLKIT_DEPLOYMENT_UNSUPPORTED`), errors of the bucket
 */
export async function readCurrent(bucket: Bucket, options: CallOptions = {}): Promise<Pointer | undefined> {
  return (await readPointer(bucket, fleetPointerKey, options))?.pointer;
}

/**
 * The deployment that a pointer leads to, by default the fleet's current one; undefined before the first deployment.
 * The manifest has at most 1 MiB, a module 64 MiB, all together 128 MiB; each module's length and digest are verified.
 *
 * @throws InvalidDeploymentError (`CELLKIT_DEPLOYMENT_INVALID`) also when an object is missing;
 * UnsupportedDeploymentError (`CELLKIT_DEPLOYMENT_UNSUPPORTED`) for a schema version, feature, kind of module or type of
 * binding that this version does not know; errors of the bucket
 */
export async function readDeployment(
  bucket: Bucket,
  pointer?: Pointer,
  options: CallOptions = {},
): Promise<Deployment | undefined> {
  const wanted = pointer ?? (await readCurrent(bucket, options));
  if (wanted === undefined) return undefined;
  const { scriptName, version } = wanted;
  const key = manifestKey(scriptName, version);
  const found = await readBounded(bucket, key, maxManifestBytes, options);
  if (found === undefined) throw new InvalidDeploymentError(key, "the object is missing");
  const manifest = valueOrThrow(key, parseManifest(found.body, wanted));
  const totalBytes = manifest.modules.reduce((sum, { bytes }) => sum + bytes, 0);
  if (totalBytes > maxTotalBytes) {
    throw new InvalidDeploymentError(
      key,
      `its modules have ${totalBytes} bytes; at most ${maxTotalBytes} are read`,
    );
  }
  const modules: Module[] = [];
  for (const described of manifest.modules)
    modules.push(await readModule(bucket, wanted, described, options));
  return { scriptName, version, manifest, modules };
}

async function readModule(
  bucket: Bucket,
  { scriptName, version }: Pointer,
  described: Manifest["modules"][number],
  waiting: CallOptions,
): Promise<Module> {
  const { name, bytes, sha256, kind } = described;
  const key = moduleKey(scriptName, version, name);
  const found = await readBounded(bucket, key, bytes, waiting);
  if (found === undefined) throw new InvalidDeploymentError(key, "the object is missing");
  if (found.body.byteLength !== bytes) {
    throw new InvalidDeploymentError(
      key,
      `it has ${found.body.byteLength} bytes, its manifest says ${bytes}`,
    );
  }
  const digest = moduleDigest(found.body);
  if (digest !== sha256) {
    throw new InvalidDeploymentError(key, `its SHA-256 begins with ${digest}, its manifest says ${sha256}`);
  }
  return { name, kind: kind ?? "esm", bytes: found.body };
}
