export type { NodeFigures } from "@cellkit/execution/contract";
export {
  type BackendListOptions,
  type BackendSource,
  createBackendList,
  type Discovery,
  type DiscoveryEvent,
  parseDiscovery,
} from "./backend/backend-list.ts";
export type { BackendBounds } from "./backend/dispatchers.ts";
export { type BackendLook, type CallEnd, lookAtBackend } from "./check/backend-look.ts";
export type { CheckResult, CheckVerdict } from "./check/check-result.ts";
export { checkRouter, type RouterCheckOptions } from "./check/check-router.ts";
export { type RouterConfig, routerOptions } from "./config.ts";
export type { Refusal } from "./core/answer.ts";
export type { Credentials } from "./core/credentials.ts";
export type { BackendHealth } from "./core/node-report.ts";
export { type BackendOrigin, parseOrigin } from "./core/origin.ts";
export { fnv1a64, walkFromChance, walkFromHash } from "./core/selection.ts";
export {
  type CredentialFileOptions,
  type CredentialSource,
  createCredentialFiles,
} from "./credential-files.ts";
export {
  BackendError,
  BackendListError,
  CertificateError,
  CredentialError,
  LedgerAbsentError,
  LedgerPlaceError,
  NoBackendError,
  PlacementError,
  RouterError,
  RouterOptionError,
  type TokenRole,
} from "./errors.ts";
export { type Placement, type PlacementRequest, placeByChance, placeByHash } from "./placement.ts";
export { type BackendQuestion, readAtBackend } from "./reconcile/ask-backend.ts";
export type { Knowledge } from "./reconcile/judge-run.ts";
export { type ReconcileOptions, type ReconcilePlane, reconcileRuns } from "./reconcile/reconcile-runs.ts";
export {
  isSettled,
  type ReconciledRun,
  type ReconcileSummary,
  type RunState,
} from "./reconcile/reconciled-run.ts";
export {
  createRouter,
  type ListenAddress,
  type Router,
  type RouterCounts,
  type RouterOptions,
} from "./router.ts";
export type { BackendCallKind, RequestRoute, RouterEvent, RouterListener } from "./router-event.ts";
export { openRouterLedgerReader } from "./router-ledger.ts";
export { defaultLimits, type ResolvedLimits, type RouterLimits } from "./router-limits.ts";
export { backendsOf, credentialsOf, listBackends, startRouter } from "./wiring.ts";
