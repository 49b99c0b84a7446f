export { type Bundle, type BundleOptions, bundleProject } from "./bundle.ts";
export type { Binding, Manifest, RawMetadata } from "./core/manifest.ts";
export type { Module, ModuleKind } from "./core/modules.ts";
// What the engine's entry module takes for itself.
export { reservedExports, reservedModules } from "./core/names.ts";
export type { Pointer } from "./core/stored.ts";
export {
  BundleError,
  DeployConflictError,
  DeploymentError,
  InvalidDeploymentError,
  OtherScriptError,
  ProjectNotFoundError,
  UnsupportedDeploymentError,
  WranglerConfigError,
} from "./errors.ts";
export { type Published, type PublishOptions, publishDeployment } from "./publish.ts";
export { type Deployment, readCurrent, readDeployment } from "./read.ts";
