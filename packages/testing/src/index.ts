export type { CallKind } from "./core/call.ts";
export type { CallMatch, Fault, Moment, RefusalFault } from "./core/fault.ts";
export { chunks, httpMessages, lengthPrefixed, lines, type MessageEndFn } from "./core/message-ends.ts";
export type { RunEnd } from "./core/run-end.ts";
export type { ScriptStep } from "./core/script.ts";
export { dispatcher, type ScriptedDispatcher } from "./dispatcher/dispatcher.ts";
export type { FaultOptions } from "./dispatcher/fault-list.ts";
export type { NodeOptions } from "./dispatcher/node-figures.ts";
export type { DispatcherOptions } from "./dispatcher/options.ts";
export type { RunFn, RunMode, RunningExecution } from "./dispatcher/running-execution.ts";
export { ranAtMostOnce, readRuns } from "./dispatcher/runs.ts";
export type { RecordedCall } from "./dispatcher/transcript.ts";
export {
  JournalError,
  ListenError,
  ProcessError,
  RanTwiceError,
  ScriptError,
  TestingError,
  TestingOptionError,
  WaitTimeoutError,
} from "./errors.ts";
export { exampleRequest } from "./example-request.ts";
export { fleet, type TestFleet } from "./fleet/fleet.ts";
export type { TestFleetOptions } from "./fleet/options.ts";
export type { TestNode } from "./fleet/test-node.ts";
export { type DispatcherProcess, dispatcherProcess } from "./process/dispatcher-process.ts";
export type { DispatcherProcessOptions, ProcessFault } from "./process/messages.ts";
export {
  type FaultProxy,
  type FaultProxyOptions,
  faultProxy,
  type MessageMatch,
} from "./proxy/fault-proxy.ts";
export type { Direction, NetworkFault, ProxiedMessage } from "./proxy/proxied-message.ts";
export { type TokenFile, testBackendToken, testClientToken, tokenFile } from "./tokens.ts";
export { until, type WaitOptions } from "./wait-until.ts";
