export { type PeerVersion, peerHeader } from "./core/constants.ts";
export { FleetKey, formatFleetKey, parseFleetKey } from "./core/fleet-key.ts";
export type { PeerRefusal, PeerRefusalError } from "./core/refusal.ts";
export { type PeerHeaders, type RequestToSign, signRequest } from "./core/sign.ts";
export type { HeaderPairs } from "./core/signed-head.ts";
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
  FleetKeyError,
  PeerError,
  PeerOptionError,
  PeerRecordError,
  type RecordFault,
  ScopeError,
  TunnelHeadError,
} from "./errors.ts";
