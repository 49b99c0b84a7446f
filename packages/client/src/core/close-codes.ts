/**
 * What each WebSocket close code means for a socket that reconnects. Codes below 3000 are those of RFC 6455 §7.4.1 and the
 * IANA registry; the reasons of 1011 and 1012 are the ones that celld sends.
 */
import type { SocketAction } from "./socket-action.ts";

/** What is to be done with the node behind the connection that closed. */
type NodeVerdict = "keep" | "probe" | "drain";

/** One line of the table: what a close code leads to. */
export interface CloseRule {
  /** `authorize`: one dial at once when headers or target can change, else never. */
  readonly action: SocketAction | "authorize";
  /** True when the peer was simply done; with `never` the socket then ends without an error. */
  readonly clean: boolean;
  readonly node: NodeVerdict;
  /** Smallest ceiling of the backoff in milliseconds; 0 where the usual one holds. */
  readonly floorMs: number;
  /** With `backoff`: this many in a row and it becomes `never`. */
  readonly limitCount: number;
}

/** What the table needs to know beside code and reason. */
export interface CloseContext {
  /** How long the connection had been open, milliseconds. */
  readonly upMs: number;
  /** From this time on a connection counts as having worked, milliseconds. */
  readonly minUptimeMs: number;
  /** Treat 1000 as a lost connection, for proxies that misuse it. */
  readonly reconnectOnNormal: boolean;
}

const BASE: CloseRule = {
  action: "backoff",
  clean: false,
  node: "keep",
  floorMs: 0,
  limitCount: Number.POSITIVE_INFINITY,
};
const BACKOFF = BASE;
const NEVER: CloseRule = { ...BASE, action: "never" };
const DONE: CloseRule = { ...BASE, action: "never", clean: true };
const AT_ONCE: CloseRule = { ...BASE, action: "at-once" };
const AT_ONCE_AND_PROBE: CloseRule = { ...BASE, action: "at-once", node: "probe" };
const AT_ONCE_AND_DRAIN: CloseRule = { ...BASE, action: "at-once", node: "drain" };
const AUTHORIZE: CloseRule = { ...BASE, action: "authorize" };
/** "Try again later" and "bad gateway" say that a few milliseconds will not do. */
const BACKOFF_FROM_1S: CloseRule = { ...BASE, floorMs: 1_000 };
const BACKOFF_THRICE: CloseRule = { ...BASE, limitCount: 3 };

/** The reason with which a node says that itself is leaving: it takes no more sockets. */
const REASON_NODE_DRAINING = "node draining";
/** The reason with which a node says that the cell's owner went away: the node itself is fine. */
const REASON_OWNER_UNAVAILABLE = "owner unavailable";

/** The rule for a connection that closed with `code` and `reason`. Total: every number has one. */
export function closeRule(code: number, reason: string, context: CloseContext): CloseRule {
  switch (code) {
    case 1000:
      return context.reconnectOnNormal ? lostRule(context, AT_ONCE) : DONE;
    case 1001:
      return AT_ONCE_AND_PROBE;
    case 1002:
    case 1003:
    case 1007:
    case 1008:
    case 1009:
    case 1010:
      return NEVER;
    case 1006:
      return lostRule(context, AT_ONCE_AND_PROBE);
    case 1012:
      if (reason === REASON_NODE_DRAINING) return AT_ONCE_AND_DRAIN;
      return reason === REASON_OWNER_UNAVAILABLE ? AT_ONCE : AT_ONCE_AND_PROBE;
    case 1013:
    case 1014:
      return BACKOFF_FROM_1S;
    case 1015:
      return BACKOFF_THRICE;
    case 3000:
    case 3003:
      return AUTHORIZE;
    case 4408:
    case 4429:
      return BACKOFF;
    default:
      return code >= 4400 && code <= 4499 ? NEVER : BACKOFF;
  }
}

/** A connection that had worked is replaced at once; one that had not is not worth a hurry. */
function lostRule(context: CloseContext, worked: CloseRule): CloseRule {
  return context.upMs >= context.minUptimeMs ? worked : BACKOFF;
}

/** Codes of the `ws` library's errors about what the *peer* sent, with the close code each stands for (RFC 6455 §7.4.1). */
const LOCAL_CLOSE_CODES: Readonly<Record<string, number>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
};

/**
 * The close code with which this side ended a connection because of what the peer sent, or undefined when the error is of
 * another kind (a reset, say). `ws` itself reports 1006 then, which would reconnect to the same message again.
 */
export function localCloseCode(errorCode: string | undefined): number | undefined {
  if (errorCode === undefined || !errorCode.startsWith("WS_ERR_")) return undefined;
  return LOCAL_CLOSE_CODES[errorCode] ?? 1002;
}
