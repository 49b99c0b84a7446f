import "./require-node.ts";

export { type Attempt, attemptsOf } from "./attempts.ts";
export { CellSocket, type CellSocketState } from "./cell-socket.ts";
export type { BinaryType } from "./cell-socket-binary.ts";
export {
  CellCloseEvent,
  CellErrorEvent,
  CellMessageEvent,
  CellReconnectingEvent,
  type CellSocketEvents,
  type CellSocketListener,
} from "./cell-socket-events.ts";
export type {
  CellSocketOptions,
  KeepaliveOptions,
  OpenContext,
  QueueOptions,
  ReconnectOptions,
  SendData,
  SocketTarget,
} from "./cell-socket-options.ts";
export type { AttemptClass } from "./core/attempt-class.ts";
export type { MarkerFn, ResponseHeaders } from "./core/drain-marker.ts";
export type { NodeStateName } from "./core/node-state.ts";
export type { SocketAction } from "./core/socket-action.ts";
export { createFetch, type FleetFetch, type FleetRequestInit } from "./create-fetch.ts";
export { type DnsEndpointsOptions, dnsEndpoints } from "./dns-endpoints.ts";
export { type Endpoint, type EndpointSource, staticEndpoints } from "./endpoints.ts";
export {
  AmbiguousRequestError,
  AttemptsExhaustedError,
  BodyNotReplayableError,
  ConfigurationError,
  DeadlineExceededError,
  FleetError,
  MessageTooLargeError,
  NoEndpointError,
  RetryBudgetError,
  SendBufferFullError,
  SocketFatalError,
} from "./errors.ts";
export { Fleet } from "./fleet.ts";
export type { NodeView } from "./fleet-node.ts";
export type { CallOptions, FleetDispatchOptions, FleetOptions, RetryOptions, SelectFn } from "./options.ts";
