// `@cellkit/execution/contract`: what both ends of the wire agree on, without a client. Pure, and loads no HTTP client: daemons start
// with it.
export { auditSchema, type ExecutionAudit } from "./core/audit.ts";
export { executionId, isExecutionId, isPortableExecutionId } from "./core/execution-id.ts";
export {
  type ExecutionRequest,
  type ExecutionRequestInput,
  executionRequestSchema,
  requestVersions,
} from "./core/execution-request.ts";
export { JsonDecimal, maxJsonLevels, parseExactJson, parseJson, stringifyJson } from "./core/json.ts";
export {
  type Capabilities,
  capabilitiesSchema,
  capabilitiesVersion,
  isCompatible,
  isEligible,
  maxNodes,
  type NodeFigures,
  type NodeReport,
  nodeFiguresSchema,
  nodeReportSchema,
} from "./core/node-report.ts";
export { type ParsedRequest, parseExecutionRequest } from "./core/parse-request.ts";
export { type PrewarmObservation, prewarmSchema } from "./core/prewarm.ts";
export {
  type ExecutionRecord,
  isTerminal,
  type Receipt,
  receiptSchema,
  recordSchema,
  type TerminalPhase,
  type TerminalRecord,
  terminalPhases,
} from "./core/record.ts";
export {
  type RequestProblem,
  type RequestProblemCode,
  unsupportedCombinations,
  validateExecutionRequest,
} from "./core/request-problems.ts";
export { maxTokenFileBytes, parseToken } from "./core/token.ts";
export { decodeUtf8 } from "./core/utf8.ts";
export { trimWhiteSpace, trimWhiteSpaceEnd } from "./core/white-space.ts";
export { ExecutionError, ExecutionIdError, JsonError } from "./errors.ts";
