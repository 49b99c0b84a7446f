export { acceptTerminalRecord } from "./accept-record.ts";
export {
  CapabilityClient,
  type CapabilityClientOptions,
  capabilityOptionsFromEnvironment,
} from "./capability-client.ts";
export {
  auditSchema,
  type Capabilities,
  capabilitiesSchema,
  capabilitiesVersion,
  type ExecutionAudit,
  ExecutionError,
  ExecutionIdError,
  type ExecutionRecord,
  type ExecutionRequest,
  type ExecutionRequestInput,
  executionId,
  executionRequestSchema,
  isCompatible,
  isEligible,
  isExecutionId,
  isPortableExecutionId,
  isTerminal,
  JsonDecimal,
  JsonError,
  type NodeFigures,
  type NodeReport,
  nodeFiguresSchema,
  nodeReportSchema,
  type ParsedRequest,
  type PrewarmObservation,
  parseExecutionRequest,
  parseJson,
  parseToken,
  prewarmSchema,
  type Receipt,
  type RequestProblem,
  type RequestProblemCode,
  receiptSchema,
  recordSchema,
  requestVersions,
  stringifyJson,
  type TerminalPhase,
  type TerminalRecord,
  terminalPhases,
  unsupportedCombinations,
  validateExecutionRequest,
} from "./contract.ts";
export type { AnswerCode } from "./core/answer-table.ts";
export {
  type CapabilityVerdict,
  type ReadyVerdict,
  type UnavailableState,
  type UnavailableVerdict,
  unknownCapability,
} from "./core/capability-verdict.ts";
export type { CallErrorCode, LocalCode, Next, Sent } from "./core/trouble.ts";
export {
  CallAbortedError,
  CallError,
  DeadlineError,
  ExecutionOptionError,
  ExecutionRequestError,
  RecordRejectedError,
} from "./errors.ts";
export { type RequestSource, RouterClient } from "./router-client.ts";
export type { RouterClientOptions } from "./router-options.ts";
export type { CallOptions, CancelEnd, Run, WaitOptions } from "./run.ts";
export type { PrepareOptions, Submission } from "./submission.ts";
export { readTokenFile, type TokenRead } from "./token-file.ts";
