/**
 * Publishing: modules and manifest first, then the script's pointer, then the fleet's.
 *
 * The script's pointer decides which of two deployments is the last one: it moves only from what was seen at the start,
 * so of two deployments at the same time one is refused. The fleet's pointer follows it: a deployment that finds the
 * fleet's pointer moved by a slower one, while the script's pointer is still its own, moves it again. A deployment that
 * broke off anywhere is finished by deploying again.
 */
import type { Bucket, CallOptions, ConditionalWrite } from "@cellkit/bucket";
import type { Bundle } from "./bundle.ts";
import { fleetPointerKey, manifestKey, moduleKey, scriptPointerKey } from "./core/layout.ts";
import type { ModuleKind } from "./core/modules.ts";
import { type Pointer, pointerText } from "./core/stored.ts";
import { DeployConflictError, OtherScriptError } from "./errors.ts";
import { readPointer, type StoredPointer } from "./read.ts";

/** Options of {@link publishDeployment}. */
export interface PublishOptions {
  /**
   * Allows to replace a script of another name. The cells of the present script keep their data in the bucket but are
   * out of reach until that script is deployed again, since a cell's id depends on the script's name.
   * @default false
   */
  readonly replaceScript?: boolean;
  /** Ends the waiting. What was written by then stays; deploying again finishes it. */
  readonly signal?: AbortSignal | undefined;
}

/** What a deployment came to. */
export interface Published {
  readonly scriptName: string;
  readonly version: string;
  /** False when the fleet's pointer led to this version already. */
  readonly created: boolean;
}

/** How often the fleet's pointer is moved again after a slower deployment moved it. */
const fleetAttemptCount = 5;

const contentTypes: Readonly<Record<ModuleKind, string>> = {
  esm: "application/javascript+module",
  wasm: "application/wasm",
  text: "text/plain; charset=utf-8",
  data: "application/octet-stream",
};

/**
 * Writes a bundle to the bucket and makes it the current deployment of the fleet. Doing it twice changes nothing.
 *
 * @throws OtherScriptError (`CELLKIT_DEPLOYMENT_OTHER_SCRIPT`), DeployConflictError (`CELLKIT_DEPLOYMENT_CONFLICT`),
 * InvalidDeploymentError (`CELLKIT_DEPLOYMENT_INVALID`) or UnsupportedDeploymentError
 * (`CELLKIT_DEPLOYMENT_UNSUPPORTED`) when a present pointer cannot be read; errors of the bucket
 */
export async function publishDeployment(
  bucket: Bucket,
  bundle: Bundle,
  options: PublishOptions = {},
): Promise<Published> {
  const { replaceScript = false, signal } = options;
  const waiting: CallOptions = { signal };
  const target: Pointer = { scriptName: bundle.scriptName, version: bundle.version };
  const scriptKey = scriptPointerKey(target.scriptName);
  const fleetSeen = await readPointer(bucket, fleetPointerKey, waiting);
  if (fleetSeen !== undefined && fleetSeen.pointer.scriptName !== target.scriptName && !replaceScript) {
    throw new OtherScriptError(fleetSeen.pointer.scriptName, target.scriptName);
  }
  const scriptSeen = await readPointer(bucket, scriptKey, waiting);
  await writeVersion(bucket, bundle, waiting);
  const moved = await movePointer(bucket, scriptKey, scriptSeen, target, waiting);
  if (moved !== undefined) throw new DeployConflictError(scriptKey, versionName(moved));
  const created = await moveFleetPointer(bucket, fleetSeen, target, waiting);
  return { ...target, created };
}

/** The modules, then the manifest, so that a manifest never names what is not there. */
async function writeVersion(
  bucket: Bucket,
  { manifest, modules }: Bundle,
  waiting: CallOptions,
): Promise<void> {
  const { script_name, version } = manifest;
  for (const { name, kind, bytes } of modules) {
    const key = moduleKey(script_name, version, name);
    await bucket.put(key, bytes, { ...waiting, contentType: contentTypes[kind] });
  }
  const text = JSON.stringify(manifest);
  await bucket.put(manifestKey(script_name, version), text, { ...waiting, contentType: "application/json" });
}

/** Whether two pointers lead to the same version. */
function same(one: Pointer, other: Pointer): boolean {
  return one.scriptName === other.scriptName && one.version === other.version;
}

/** How a version is called in a message. */
function versionName(found: StoredPointer | "absent"): string {
  return found === "absent" ? "nothing" : `version ${found.pointer.version} of ${found.pointer.scriptName}`;
}

/** An unsure write is settled by reading back; nothing is written twice. */
async function settled(write: ConditionalWrite, waiting: CallOptions): Promise<boolean> {
  const outcome = write.kind === "ambiguous" ? await write.settle(waiting) : write;
  return outcome.kind === "applied";
}

/** Moves a pointer from what was seen by one conditional write. Returns what stands there instead when that was refused. */
async function movePointer(
  bucket: Bucket,
  key: string,
  seen: StoredPointer | undefined,
  target: Pointer,
  waiting: CallOptions,
): Promise<StoredPointer | "absent" | undefined> {
  if (seen !== undefined && same(seen.pointer, target)) return undefined;
  const text = pointerText(target);
  const write =
    seen === undefined
      ? await bucket.createIfAbsent(key, text, waiting)
      : await bucket.replaceIf(key, text, seen.etag, waiting);
  if (await settled(write, waiting)) return undefined;
  const found = (await readPointer(bucket, key, waiting)) ?? "absent";
  return found !== "absent" && same(found.pointer, target) ? undefined : found;
}

/** @returns whether the fleet's pointer led elsewhere before */
async function moveFleetPointer(
  bucket: Bucket,
  first: StoredPointer | undefined,
  target: Pointer,
  waiting: CallOptions,
): Promise<boolean> {
  const scriptKey = scriptPointerKey(target.scriptName);
  let seen = first;
  for (let attempt = 1; ; attempt += 1) {
    const found = await movePointer(bucket, fleetPointerKey, seen, target, waiting);
    if (found === undefined) return seen === undefined || !same(seen.pointer, target);
    const sameScript = found !== "absent" && found.pointer.scriptName === target.scriptName;
    const script = await readPointer(bucket, scriptKey, waiting);
    const stillLast = script !== undefined && same(script.pointer, target);
    if (!sameScript || !stillLast || attempt === fleetAttemptCount) {
      throw new DeployConflictError(fleetPointerKey, versionName(found));
    }
    seen = found;
  }
}
