export { ConformanceError } from "../errors.ts";
export { checkClaimHistory, type HistoryProblem } from "./claim-history.ts";
export type {
  ConformanceCase,
  ConformanceFeature,
  ConformanceFeatures,
  OpenLedger,
} from "./conformance-case.ts";
export {
  type HistoryAnswer,
  type HistoryOperation,
  type RecordedLedger,
  recordHistory,
} from "./history.ts";
export { ledgerConformance } from "./ledger-conformance.ts";
