export {
  type BackendListOptions,
  type BackendSource,
  createBackendList,
  type Discovery,
  type DiscoveryEvent,
  parseDiscovery,
} from "./backend/backend-list.ts";
export type { BackendBounds } from "./backend/dispatchers.ts";
export { type RouterConfig, routerOptions } from "./config.ts";
export type { Refusal } from "./core/answer.ts";
export type { Credentials } from "./core/credentials.ts";
export type { BackendHealth, NodeFigures } from "./core/node-report.ts";
export { type BackendOrigin, parseOrigin } from "./core/origin.ts";
export { fnv1a64, walkFromChance, walkFromHash } from "./core/selection.ts";
export {
  type CredentialFileOptions,
  type CredentialSource,
  createCredentialFiles,
} from "./credential-files.ts";
export {
  BackendError,
  CertificateError,
  CredentialError,
  NoBackendError,
  RouterError,
  RouterOptionError,
  type TokenRole,
} from "./errors.ts";
export { type Placement, type PlacementRequest, placeByChance, placeByHash } from "./placement.ts";
export {
  createRouter,
  type ListenAddress,
  type Router,
  type RouterCounts,
  type RouterOptions,
} from "./router.ts";
export type { BackendCallKind, RequestRoute, RouterEvent, RouterListener } from "./router-event.ts";
export { defaultLimits, type ResolvedLimits, type RouterLimits } from "./router-limits.ts";
export { startRouter } from "./wiring.ts";
