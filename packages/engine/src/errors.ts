// Everything that can go wrong in the node engine, as classes with stable codes. Match on `code`: two copies of a
// package break `instanceof`. No message carries a key, a credential or a request body.

/** Base class of every error of @cellkit/engine. */
export abstract class EngineError extends Error {
  abstract readonly code: string;
}

/** An option of the engine cannot be used. Nothing was started. */
export class EngineOptionError extends EngineError {
  override readonly name = "EngineOptionError";
  readonly code = "CELLKIT_ENGINE_OPTION";
}

/** A method was called in a state that does not allow it, for example `start()` on an engine that was stopped. */
export class EngineStateError extends EngineError {
  override readonly name = "EngineStateError";
  readonly code = "CELLKIT_ENGINE_STATE";
}

/** The npm package `workerd` or its binary for this machine is not installed. */
export class WorkerdMissingError extends EngineError {
  override readonly name = "WorkerdMissingError";
  readonly code = "CELLKIT_ENGINE_WORKERD_MISSING";
}

/** Another version of workerd than the pinned one was found. Cluster mode is experimental: only one version is trusted. */
export class WorkerdVersionError extends EngineError {
  override readonly name = "WorkerdVersionError";
  readonly code = "CELLKIT_ENGINE_WORKERD_VERSION";
  readonly found: string;
  readonly pinned: string;
  constructor(found: string, pinned: string, options?: ErrorOptions) {
    super(
      `workerd ${found} is installed, but this cellkit runs only with workerd ${pinned}: install workerd@${pinned}`,
      options,
    );
    this.found = found;
    this.pinned = pinned;
  }
}

/** The deployed Worker did not load. `detail` is what workerd printed, the Worker's own text first. */
export class WorkerLoadError extends EngineError {
  override readonly name = "WorkerLoadError";
  readonly code = "CELLKIT_ENGINE_WORKER_LOAD";
  readonly detail: string;
  constructor(script: string, detail: string, options?: ErrorOptions) {
    super(`the Worker ${script} did not load: ${detail}. Fix it and deploy again`, options);
    this.detail = detail;
  }
}

/** workerd ended or stayed unready while it was being started, for another reason than the Worker. */
export class WorkerdStartError extends EngineError {
  override readonly name = "WorkerdStartError";
  readonly code = "CELLKIT_ENGINE_WORKERD_START";
}

/** The deployment needs something that this engine cannot give it (a binding type, a feature, an impossible name). */
export class DeploymentUnsupportedError extends EngineError {
  override readonly name = "DeploymentUnsupportedError";
  readonly code = "CELLKIT_ENGINE_DEPLOYMENT_UNSUPPORTED";
}

/** The bucket prefix belongs to another engine or another format, or one of our records there cannot be read. */
export class EngineStorageError extends EngineError {
  override readonly name = "EngineStorageError";
  readonly code = "CELLKIT_ENGINE_STORAGE";
}

/** The data directory cannot be used: not writable, in use by a live node, or its record cannot be read. */
export class DataDirectoryError extends EngineError {
  override readonly name = "DataDirectoryError";
  readonly code = "CELLKIT_ENGINE_DATA_DIRECTORY";
}

/** The file with secrets is missing, too open, too large or not JSON or KEY=VALUE lines. Values are never shown. */
export class SecretsFileError extends EngineError {
  override readonly name = "SecretsFileError";
  readonly code = "CELLKIT_ENGINE_SECRETS_FILE";
}

/** The file that overrides vars is missing, too large, not JSON or KEY=VALUE lines, or names a binding that is no var. */
export class VarsFileError extends EngineError {
  override readonly name = "VarsFileError";
  readonly code = "CELLKIT_ENGINE_VARS_FILE";
}

/** The entry module did not answer on the control socket, or answered something else than expected. */
export class ControlError extends EngineError {
  override readonly name = "ControlError";
  readonly code = "CELLKIT_ENGINE_CONTROL";
}
