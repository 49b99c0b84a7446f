export type { SpliceTotals } from "./connection-host.ts";
export { drainRefusal, type LocalAnswer } from "./core/answer.ts";
export { closeFrame, maxCloseReasonBytes } from "./core/close-frame.ts";
export type { FieldRules, Framing } from "./core/fields.ts";
export { FrameScanner } from "./core/frame-scanner.ts";
export { type RequestHead, RequestTracker } from "./core/request-tracker.ts";
export { type ResponseHead, ResponseTracker } from "./core/response-tracker.ts";
export { FramingError, ListenError, OptionError, SpliceError } from "./errors.ts";
export type {
  ClientAddress,
  ClientHeader,
  CloseReason,
  LocalRequest,
  SpliceServerOptions,
} from "./options.ts";
export { createSpliceServer, type SpliceCounts, type SpliceServer } from "./server.ts";
