// The node engine: what celld uses.

export { ClusterLeases } from "./cluster-leases.ts";
// For tools that show or check what a node would run, without running it.
export { renderEntryModule } from "./core/entry-module.ts";
export { reservedFieldPrefixes } from "./core/reserved-fields.ts";
export { type CellClass, planWorker, type WorkerBinding, type WorkerPlan } from "./core/worker-plan.ts";
export {
  cellKey,
  type RenderedConfig,
  renderWorkerdConfig,
  type WorkerdInstance,
  type WorkerRuntime,
} from "./core/workerd-config.ts";
export type { EngineCredentials, EngineEvents, EngineLog, WorkerdEngineOptions } from "./engine-options.ts";
export {
  ControlError,
  DataDirectoryError,
  DeploymentUnsupportedError,
  EngineError,
  EngineOptionError,
  EngineStateError,
  EngineStorageError,
  SecretsFileError,
  VarsFileError,
  WorkerdMissingError,
  WorkerdStartError,
  WorkerdVersionError,
  WorkerLoadError,
} from "./errors.ts";
export type {
  CellPlace,
  ClosedCells,
  DeploymentName,
  DrainOptions,
  EngineSnapshot,
  EngineState,
  NodeEngine,
} from "./node-engine.ts";
export { pinnedWorkerdVersion } from "./workerd-binary.ts";
export { createWorkerdEngine } from "./workerd-engine.ts";
