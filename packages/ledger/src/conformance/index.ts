export { ConformanceError } from "../errors.ts";
export type {
  ConformanceCase,
  ConformanceFeature,
  ConformanceFeatures,
  OpenLedger,
} from "./conformance-case.ts";
export { ledgerConformance } from "./ledger-conformance.ts";
