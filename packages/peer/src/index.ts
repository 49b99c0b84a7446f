export type { CallHandlers } from "./call-server.ts";
export { type CarryListeners, carry } from "./carry.ts";
export { type CallListeners, carryCalls } from "./carry-calls.ts";
export { type CellAddress, currentScript, type ResolvedCell, resolveCell } from "./cell-address.ts";
export type { PeerAddress } from "./connection.ts";
export { type PeerVersion, peerHeader } from "./core/constants.ts";
export { FleetKey, formatFleetKey, parseFleetKey } from "./core/fleet-key.ts";
export { type RecordsMode, recordsExtension } from "./core/records-offer.ts";
export type { PeerRefusal, PeerRefusalError } from "./core/refusal.ts";
export { isScope } from "./core/scope.ts";
export { type PeerHeaders, type RequestToSign, signRequest } from "./core/sign.ts";
export type { HeaderPairs } from "./core/signed-head.ts";
export type { TunnelKind } from "./core/tunnel-kind.ts";
export {
  type Accepted,
  type AcceptedEstablishment,
  type AcceptedHead,
  type ReceivedHead,
  type ReceivedRequest,
  RequestVerifier,
  type RequestVerifierOptions,
} from "./core/verifier.ts";
export {
  type DiagnoseOptions,
  type DiagnosisTarget,
  diagnoseNode,
  type NodeDiagnosis,
  type NodeVerdict,
} from "./diagnose-node.ts";
export { type DialTunnelOptions, dialTunnel } from "./dial-tunnel.ts";
export {
  FleetKeyError,
  FleetKeyMissingError,
  FleetKeyUncertainError,
  IrregularAnswerError,
  KeyRotationError,
  KeyRotationPendingError,
  type LaggingNode,
  NodeRecordError,
  NodeRecordLostError,
  NodeRecordUncertainError,
  NoLiveNodeError,
  NoScriptError,
  PeerError,
  PeerNoAnswerError,
  PeerOptionError,
  PeerRecordError,
  PeerUnreachableError,
  PeerVersionError,
  type RecordFault,
  RecordsMissingError,
  RoadAliasError,
  RpcFailure,
  ScopeError,
  StaleOwnerError,
  TunnelHeadError,
  TunnelLostError,
  TunnelRefusedError,
} from "./errors.ts";
export { FleetKeyring, type FleetKeyringOptions, openFleetKeyring } from "./fleet-keyring.ts";
export {
  type CreateFleetKeyOptions,
  createOrLoadFleetKey,
  type FleetKeys,
  fleetKeyKey,
  keyFingerprint,
  loadFleetKeys,
  requireFleetKeys,
  shownKeys,
} from "./fleet-keys.ts";
export type {
  FleetCallOptions,
  FleetObject,
  FleetStore,
  FleetWrite,
  FleetWriteAmbiguous,
  FleetWriteApplied,
  FleetWriteRejected,
  NodeStore,
} from "./fleet-store.ts";
export { guardHeads, type HeadGuard, type HeadGuardOptions } from "./head-guard.ts";
export {
  dropOldKey,
  laggingNodes,
  oldKeyGraceMs,
  promoteNextKey,
  publishNextKey,
  type RotationState,
  readRotation,
  type StepOptions,
  signWithNextKey,
} from "./key-rotation.ts";
export { keyRotationKey } from "./key-rotation-record.ts";
export {
  NodeDirectory,
  type NodeDirectoryOptions,
  type NodeListing,
  type PickOptions,
} from "./node-directory.ts";
export {
  formatNodeRecord,
  isLive,
  type NodeLoad,
  type NodeRecord,
  nodeRecordKey,
  parseNodeRecord,
  type ShownKeys,
} from "./node-record.ts";
export {
  type NodeDescription,
  NodeRegistration,
  type RegisterNodeOptions,
  registerNode,
} from "./node-registration.ts";
export { judgeOperator, type OperatorAccess } from "./operator-access.ts";
export { parsePeerAddress } from "./peer-address.ts";
export type { PeerCall, PeerCallFacts } from "./peer-call.ts";
export { PeerClient, type PeerClientOptions } from "./peer-client.ts";
export type { PeerConnection, PeerRejection } from "./peer-connection.ts";
export {
  type PeerListener,
  type PeerListenerCounts,
  type PeerListenerOptions,
  peerListener,
  type TunnelOrigin,
} from "./peer-listener.ts";
export {
  faultOfProof,
  type ProbeAnswer,
  type ProbeExpectation,
  type ProbeOptions,
  type ProbeTarget,
  type ProofFault,
  probeNode,
  probePath,
} from "./peer-probe.ts";
export { type AnswerProbeOptions, answerProbe, type ProbeIdentity, type ProbeReply } from "./probe-answer.ts";
export { createProbeKey, type ProbeKey } from "./probe-key.ts";
export {
  type ProtocolRoutes,
  type ProtocolRoutesOptions,
  peerVersionField,
  protocolRoutes,
} from "./protocol-routes.ts";
export {
  callProtocol2,
  type ProtocolTwoAnswer,
  type ProtocolTwoNode,
  type ProtocolTwoOptions,
} from "./protocol-two.ts";
export type { Refused } from "./received-head.ts";
export { type ClaimRoadAliasOptions, claimRoadAlias, type RoadAlias } from "./road-alias.ts";
export { type RoadFailure, RoadRelay, type RoadRelayOptions } from "./road-relay.ts";
export type { RpcHandler } from "./rpc.ts";
export { type Peer, TunnelPool, type TunnelPoolOptions } from "./tunnel-pool.ts";
