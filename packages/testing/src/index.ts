export type { CallKind } from "./core/call.ts";
export type { CallMatch, Fault, Moment } from "./core/fault.ts";
export type { RunEnd } from "./core/run-end.ts";
export type { ScriptStep } from "./core/script.ts";
export { dispatcher, type ScriptedDispatcher } from "./dispatcher/dispatcher.ts";
export type { FaultOptions } from "./dispatcher/fault-list.ts";
export type { NodeOptions } from "./dispatcher/node-figures.ts";
export { type DispatcherOptions, testBackendToken } from "./dispatcher/options.ts";
export type { RunFn, RunMode, RunningExecution } from "./dispatcher/running-execution.ts";
export { ranAtMostOnce, readRuns } from "./dispatcher/runs.ts";
export type { RecordedCall } from "./dispatcher/transcript.ts";
export {
  JournalError,
  ProcessError,
  RanTwiceError,
  ScriptError,
  TestingError,
  TestingOptionError,
  WaitTimeoutError,
} from "./errors.ts";
export { type DispatcherProcess, dispatcherProcess } from "./process/dispatcher-process.ts";
export type { DispatcherProcessOptions, ProcessFault } from "./process/messages.ts";
export { until, type WaitOptions } from "./wait-until.ts";
