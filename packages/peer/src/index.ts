export {
  FleetKeyError,
  PeerError,
  PeerOptionError,
  PeerRecordError,
  type RecordFault,
  ScopeError,
  TunnelHeadError,
} from "./errors.ts";
