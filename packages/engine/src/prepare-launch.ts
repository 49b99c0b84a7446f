// Everything that is done once, before the first workerd of an engine: checks first, then what touches the disk and the
// bucket.
import { type DataDirectory, openDataDirectory } from "./data-directory.ts";
import { openDirectoryLock } from "./directory-lock.ts";
import { checkAddress, type ResolvedOptions } from "./engine-options.ts";
import type { LaunchInput } from "./launch.ts";
import { endPredecessor } from "./predecessor.ts";
import { claimStorage, clusterKey } from "./storage-records.ts";
import { readSecrets, readVars } from "./variables-file.ts";
import { readWorkerRuntime } from "./worker-runtime.ts";
import { findWorkerd } from "./workerd-binary.ts";

/** What every launch of an engine has in common. */
export type LaunchParts = Omit<LaunchInput, "plan"> & { readonly directory: DataDirectory };

/** Finds workerd, reads vars and secrets, opens the data directory, ends the predecessor and claims the prefix. @throws EngineError */
export async function prepareLaunch(options: ResolvedOptions, signal: AbortSignal): Promise<LaunchParts> {
  const { bucket, log, secretsFile, varsFile, unsafeBinary } = options;
  const binary = unsafeBinary ?? (await findWorkerd());
  const secrets = secretsFile === undefined ? {} : await readSecrets(secretsFile);
  const vars = varsFile === undefined ? {} : await readVars(varsFile);
  const directory = await openDataDirectory(options.directory);
  const lock = await openDirectoryLock(options.directory);
  try {
    // Even when the bucket cannot be reached, no orphan goes on.
    await endPredecessor(directory, bucket, log, signal, lock);
    await lock?.take(signal);
    await claimStorage(bucket, signal);
    const key = await clusterKey(bucket, signal);
    const advertise =
      typeof options.advertise === "string" ? options.advertise : await options.advertise(signal);
    checkAddress(advertise);
    return {
      options,
      advertise,
      directory,
      lock,
      binary,
      runtime: await readWorkerRuntime(),
      clusterKey: key,
      vars,
      secrets,
    };
  } catch (error) {
    await lock?.close();
    throw error;
  }
}
