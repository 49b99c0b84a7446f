/** Base of every error of this package; match on `code`, since two copies of a package break `instanceof`. */
export abstract class PeerError extends Error {
  /** Stable and unique per class: `CELLKIT_PEER_…`. */
  abstract readonly code: string;
}

/** An option or argument is outside its range. Correct the value named in the message. */
export class PeerOptionError extends PeerError {
  override readonly name = "PeerOptionError";
  readonly code = "CELLKIT_PEER_OPTION";
  readonly option: string;

  constructor(option: string, problem: string, options?: ErrorOptions) {
    super(`${option} ${problem}`, options);
    this.option = option;
  }
}

/**
 * The text of `fleet/peer-auth.json` (or of the key of a rotation) is no fleet key. It is never overwritten: find out
 * who wrote it. The message holds no part of the text.
 */
export class FleetKeyError extends PeerError {
  override readonly name = "FleetKeyError";
  readonly code = "CELLKIT_PEER_FLEET_KEY";

  constructor(problem: string, options?: ErrorOptions) {
    super(`the fleet key object ${problem}; restore it from a backup, it is not replaced by itself`, options);
  }
}

/** A scope or an object id does not have the form that the protocol gives it. */
export class ScopeError extends PeerError {
  override readonly name = "ScopeError";
  readonly code = "CELLKIT_PEER_SCOPE";

  constructor(problem: string, options?: ErrorOptions) {
    super(problem, options);
  }
}

/** What a peer answered to a tunnel's establishment is no answer of this protocol. Close the connection. */
export class TunnelHeadError extends PeerError {
  override readonly name = "TunnelHeadError";
  readonly code = "CELLKIT_PEER_TUNNEL_HEAD";
  /** Which rule was broken, without bytes of the input. */
  readonly rule: string;

  constructor(rule: string, options?: ErrorOptions) {
    super(`the peer's answer to a tunnel is not understood: ${rule}; close the connection`, options);
    this.rule = rule;
  }
}

/** What was found wrong with a stream of records: see the table in docs/protocol/records.md. */
export type RecordFault =
  | "length"
  | "authentication"
  | "after-end"
  | "truncated"
  | "sequence-limit"
  | "ended"
  | "failed";

/**
 * A stream of records is not what the other end sealed: bytes were changed, dropped, repeated, reordered, added or cut
 * off. Nothing of it may be used after this; destroy the connection.
 */
export class PeerRecordError extends PeerError {
  override readonly name = "PeerRecordError";
  readonly code = "CELLKIT_PEER_RECORD";
  readonly fault: RecordFault;

  constructor(fault: RecordFault, problem: string, options?: ErrorOptions) {
    super(`${problem}; destroy the connection`, options);
    this.fault = fault;
  }
}
