// The table of all errors of this package, in one file: longer than others, so that what a caller may meet is read in one place.
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

/** No connection to the peer came about, or no tunnel in it: nothing of a call was sent, so it may be made again. */
export class PeerUnreachableError extends PeerError {
  override readonly name = "PeerUnreachableError";
  readonly code = "CELLKIT_PEER_UNREACHABLE";
  /** `host:port` that was dialled. */
  readonly address: string;

  constructor(address: string, reason: string, options?: ErrorOptions) {
    super(
      `no connection to peer ${address} (${reason}); check that the node runs and can be reached`,
      options,
    );
    this.address = address;
  }
}

/** The peer's answer carries no protocol version, or another than ours. Run nodes of one protocol in a fleet. */
export class PeerVersionError extends PeerError {
  override readonly name = "PeerVersionError";
  readonly code = "CELLKIT_PEER_VERSION";
  /** As answered, at most 16 characters; undefined when there was none. */
  readonly version: string | undefined;

  constructor(version: string | undefined, own: number, options?: ErrorOptions) {
    const shown = version?.slice(0, 16);
    super(
      shown === undefined
        ? "the peer's answer has no protocol version; whether the call ran is unknown: is this the internal listener of a node?"
        : `the peer speaks protocol ${JSON.stringify(shown)}, this side ${own}; run nodes of one protocol in a fleet`,
      options,
    );
    this.version = shown;
  }
}

/** The peer refused the tunnel: nothing ran. The message says what its status means. */
export class TunnelRefusedError extends PeerError {
  override readonly name = "TunnelRefusedError";
  readonly code = "CELLKIT_PEER_TUNNEL_REFUSED";
  readonly status: number;
  /** The node at this address is another than the one that was meant: look it up again. */
  readonly staleOwner: boolean;
  /** The peer's clock when it refused, milliseconds since the Unix epoch, to a second; undefined when not told. */
  readonly dateMs: number | undefined;

  constructor(
    address: string,
    answer: { status: number; staleOwner: boolean; dateMs: number | undefined },
    options?: ErrorOptions,
  ) {
    const advice = refusalAdvice[answer.status] ?? "see the log of that node";
    super(`peer ${address} refused the tunnel with ${answer.status}, and nothing ran: ${advice}`, options);
    this.status = answer.status;
    this.staleOwner = answer.staleOwner;
    this.dateMs = answer.dateMs;
  }
}

const refusalAdvice: Readonly<Record<number, string>> = {
  400: "it does not serve this kind of tunnel",
  401: "the fleet keys differ, or the clocks by more than 30 s",
  403: "it requires records, and got no offer of them; is somebody in between?",
  404: "is this the internal listener of a node?",
  409: "another node answers at this address; look the node up again",
  426: "it speaks another version of the protocol",
  503: "it cannot take more requests",
};

/**
 * Records were required and the tunnel would be without them: the peer does not know them, or somebody between took
 * the offer or its acceptance away. Nothing was sent in the clear.
 */
export class RecordsMissingError extends PeerError {
  override readonly name = "RecordsMissingError";
  readonly code = "CELLKIT_PEER_RECORDS_MISSING";

  constructor(address: string, options?: ErrorOptions) {
    super(
      `peer ${address} did not accept records, which are required here; is somebody in between, or does the node not know records-1?`,
      options,
    );
  }
}

/** A tunnel broke before its end. Whether a call inside it ran is unknown: it is not repeated. */
export class TunnelLostError extends PeerError {
  override readonly name = "TunnelLostError";
  readonly code = "CELLKIT_PEER_TUNNEL_LOST";

  constructor(reason: string, options?: ErrorOptions) {
    super(`the tunnel to the peer was lost: ${reason}; whether the call in it ran is unknown`, options);
  }
}

/** The object of one node cannot be read as a node record. The node may run all the same: look at who wrote it. */
export class NodeRecordError extends PeerError {
  override readonly name = "NodeRecordError";
  readonly code = "CELLKIT_PEER_NODE_RECORD";
  /** The object's key. */
  readonly key: string;
  /** What is wrong with it. */
  readonly reason: string;

  constructor(key: string, reason: string, options?: ErrorOptions) {
    super(`the record ${key} ${reason}; its node must write it anew`, options);
    this.key = key;
    this.reason = reason;
  }
}

/** Another process has taken this node's name. Two processes must not share one: stop one, or name it otherwise. */
export class NodeRecordLostError extends PeerError {
  override readonly name = "NodeRecordLostError";
  readonly code = "CELLKIT_PEER_NODE_RECORD_LOST";
  readonly node: string;

  constructor(node: string, options?: ErrorOptions) {
    super(
      `the record of node ${node} was taken by another process of that name; stop one of the two, or give it another name`,
      options,
    );
    this.node = node;
  }
}

/** The store does not say whether a node's record was written. A later try may succeed. */
export class NodeRecordUncertainError extends PeerError {
  override readonly name = "NodeRecordUncertainError";
  readonly code = "CELLKIT_PEER_NODE_RECORD_UNCERTAIN";

  constructor(node: string, options?: ErrorOptions) {
    super(`the store does not tell whether the record of node ${node} was written; try again`, options);
  }
}

/** No node can be called: none runs, or none speaks this generation of the protocol. */
export class NoLiveNodeError extends PeerError {
  override readonly name = "NoLiveNodeError";
  readonly code = "CELLKIT_PEER_NO_LIVE_NODE";
  /** Nodes that are live, though none of them may be called. */
  readonly liveCount: number;

  constructor(liveCount: number, peerProtocol: number | undefined, options?: ErrorOptions) {
    const wanted = peerProtocol === undefined ? "" : ` that speaks protocol ${peerProtocol}`;
    super(
      `the fleet has no node to call${wanted} (${liveCount} live); start one, and look at the clocks if one runs`,
      options,
    );
    this.liveCount = liveCount;
  }
}

/** The fleet has no key. A node makes it at its start; command-line tools never do. */
export class FleetKeyMissingError extends PeerError {
  override readonly name = "FleetKeyMissingError";
  readonly code = "CELLKIT_PEER_FLEET_KEY_MISSING";

  constructor(key: string, options?: ErrorOptions) {
    super(`the fleet has no ${key}; start a node first, or name the fleet's own bucket and prefix`, options);
  }
}

/** The store does not say whether a key was written, and reading back did not tell either. Nothing may be assumed. */
export class FleetKeyUncertainError extends PeerError {
  override readonly name = "FleetKeyUncertainError";
  readonly code = "CELLKIT_PEER_FLEET_KEY_UNCERTAIN";

  constructor(key: string, options?: ErrorOptions) {
    super(`the store does not tell whether ${key} was written; start again once the store answers`, options);
  }
}

/** The fleet's keys are not where a step of the rotation needs them, or somebody else changed them meanwhile. */
export class KeyRotationError extends PeerError {
  override readonly name = "KeyRotationError";
  readonly code = "CELLKIT_PEER_KEY_ROTATION";
}

/** A node that holds a rotation back. */
export interface LaggingNode {
  readonly node: string;
  /** What it has not done. */
  readonly reason: string;
}

/** Nodes have not followed the rotation yet. Wait and try again; a node that never follows must be stopped or updated. */
export class KeyRotationPendingError extends PeerError {
  override readonly name = "KeyRotationPendingError";
  readonly code = "CELLKIT_PEER_KEY_ROTATION_PENDING";
  readonly nodes: readonly LaggingNode[];

  constructor(nodes: readonly LaggingNode[], options?: ErrorOptions) {
    const shown = nodes.slice(0, 5).map(({ node, reason }) => `${node} ${reason}`);
    const more = nodes.length > shown.length ? `, and ${nodes.length - shown.length} more` : "";
    super(`the rotation waits: ${shown.join(", ")}${more}; try again once they have followed`, options);
    this.nodes = nodes;
  }
}

/** A method of a cell failed, in words that its caller may read. Thrown by an `onRpc` handler, and by `rpc` there. */
export class RpcFailure extends PeerError {
  override readonly name = "RpcFailure";
  readonly code = "CELLKIT_PEER_RPC_FAILED";
}

/** The peer took the connection but gave no usable answer. Whether it acted on the request is unknown. */
export class PeerNoAnswerError extends PeerError {
  override readonly name = "PeerNoAnswerError";
  readonly code = "CELLKIT_PEER_NO_ANSWER";
  /** `host:port` that was asked. */
  readonly address: string;
  /** What came instead. */
  readonly reason: string;

  constructor(address: string, reason: string, options?: ErrorOptions) {
    super(
      `peer ${address} gave no usable answer (${reason}); whether the request had an effect is unknown`,
      options,
    );
    this.address = address;
    this.reason = reason;
  }
}

/** The node that was called does not own the cell, or is another one than was meant: nothing ran. Look the owner up again. */
export class StaleOwnerError extends PeerError {
  override readonly name = "StaleOwnerError";
  readonly code = "CELLKIT_PEER_STALE_OWNER";
  readonly address: string;

  constructor(address: string, text: string, options?: ErrorOptions) {
    super(
      `peer ${address} does not own the cell (${text}); nothing ran: look up the owner and call again`,
      options,
    );
    this.address = address;
  }
}

/** The script whose cells are called is not known: ids of cells are made from its name. Pass it, or deploy one. */
export class NoScriptError extends PeerError {
  override readonly name = "NoScriptError";
  readonly code = "CELLKIT_PEER_NO_SCRIPT";

  constructor(problem: string, options?: ErrorOptions) {
    super(`the fleet's deploy/current.json ${problem}`, options);
  }
}

/** A node found no loopback alias for itself, or its relay cannot listen for those of its peers. */
export class RoadAliasError extends PeerError {
  override readonly name = "RoadAliasError";
  readonly code = "CELLKIT_PEER_ROAD_ALIAS";
}

/**
 * A handler gave an answer that cannot be sent as it is: another status than 200 to 599, or another number of bytes than
 * its content-length. The caller got a 500 or lost its tunnel; correct the handler. Only `onError` gets it.
 */
export class IrregularAnswerError extends PeerError {
  override readonly name = "IrregularAnswerError";
  readonly code = "CELLKIT_PEER_IRREGULAR_ANSWER";

  constructor(problem: string, options?: ErrorOptions) {
    super(`the handler's answer cannot be sent: ${problem}; correct the handler`, options);
  }
}
