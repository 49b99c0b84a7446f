export { acceptTerminalRecord } from "./accept-record.ts";
export {
  CapabilityClient,
  type CapabilityClientOptions,
  capabilityOptionsFromEnvironment,
} from "./capability-client.ts";
export type { AnswerCode } from "./core/answer-table.ts";
export { auditSchema, type ExecutionAudit } from "./core/audit.ts";
export {
  type CapabilityVerdict,
  type ReadyVerdict,
  type UnavailableState,
  type UnavailableVerdict,
  unknownCapability,
} from "./core/capability-verdict.ts";
export { executionId, isExecutionId, isPortableExecutionId } from "./core/execution-id.ts";
export {
  type ExecutionRequest,
  type ExecutionRequestInput,
  executionRequestSchema,
  requestVersions,
} from "./core/execution-request.ts";
export { JsonDecimal, parseJson, stringifyJson } from "./core/json.ts";
export {
  type Capabilities,
  capabilitiesSchema,
  capabilitiesVersion,
  isCompatible,
  isEligible,
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
export { parseToken } from "./core/token.ts";
export type { CallErrorCode, LocalCode, Next, Sent } from "./core/trouble.ts";
export {
  CallAbortedError,
  CallError,
  DeadlineError,
  ExecutionError,
  ExecutionIdError,
  ExecutionOptionError,
  ExecutionRequestError,
  JsonError,
  RecordRejectedError,
} from "./errors.ts";
export { type RequestSource, RouterClient } from "./router-client.ts";
export type { RouterClientOptions } from "./router-options.ts";
export type { CallOptions, CancelEnd, Run, WaitOptions } from "./run.ts";
export type { PrepareOptions, Submission } from "./submission.ts";
export { readTokenFile, type TokenRead } from "./token-file.ts";
