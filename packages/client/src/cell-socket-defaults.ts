/** Checks the options of a socket once, at the door, and fills in the defaults. */
import type { CellSocketOptions } from "./cell-socket-options.ts";
import type { InboxPolicy } from "./core/socket-inbox.ts";
import type { KeepalivePolicy } from "./core/socket-keepalive.ts";
import type { QueuePolicy } from "./core/socket-queue.ts";
import type { ReconnectPolicy } from "./core/socket-reconnect.ts";
import { ConfigurationError } from "./errors.ts";

const KIB = 1_024;
const MIB = 1_048_576;
/** What a runtime accepts as either text of an auto-response pair, in UTF-8 bytes. */
const MAX_PAIR_BYTES = 2_048;
/** Longest time a timer can run; beyond it Node fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** Options with every default in place. */
export interface ResolvedSocketOptions {
  readonly protocols: readonly string[];
  readonly headers: CellSocketOptions["headers"];
  readonly handshakeTimeoutMs: number;
  readonly keepalive: KeepalivePolicy | undefined;
  readonly reconnect: ReconnectPolicy;
  readonly classifyClose: CellSocketOptions["classifyClose"];
  readonly classifyUpgrade: CellSocketOptions["classifyUpgrade"];
  readonly reconnectOnNormal: boolean;
  readonly migrate: boolean;
  readonly queue: QueuePolicy;
  readonly highWaterMarkBytes: number;
  readonly lowWaterMarkBytes: number;
  readonly receive: InboxPolicy;
  readonly maxPayloadBytes: number;
  readonly maxSendBytes: number;
  readonly perMessageDeflate: boolean;
  readonly closeTimeoutMs: number;
  readonly onOpen: CellSocketOptions["onOpen"];
}

/** @throws ConfigurationError (`CELLKIT_CLIENT_CONFIG`) for a value that cannot work */
export function resolveSocketOptions(
  options: CellSocketOptions,
  targetIsFunction: boolean,
): ResolvedSocketOptions {
  const highWaterMarkBytes = count("highWaterMarkBytes", options.highWaterMarkBytes ?? MIB, 1);
  const lowWaterMarkBytes = count("lowWaterMarkBytes", options.lowWaterMarkBytes ?? 256 * KIB, 1);
  if (lowWaterMarkBytes > highWaterMarkBytes) {
    throw new ConfigurationError(
      `lowWaterMarkBytes (${lowWaterMarkBytes}) must not be above highWaterMarkBytes (${highWaterMarkBytes})`,
    );
  }
  return {
    protocols: subprotocols(options.protocols ?? []),
    headers: options.headers,
    handshakeTimeoutMs: time("handshakeTimeoutMs", options.handshakeTimeoutMs ?? 5_000, 1),
    keepalive: options.keepalive === false ? undefined : resolveKeepalive(options.keepalive ?? {}),
    reconnect: resolveReconnect(options, targetIsFunction || typeof options.headers === "function"),
    classifyClose: options.classifyClose,
    classifyUpgrade: options.classifyUpgrade,
    reconnectOnNormal: options.reconnectOnNormal ?? false,
    migrate: (options.migrate ?? "break-before-make") !== false,
    queue: resolveQueue(options.queue ?? {}),
    highWaterMarkBytes,
    lowWaterMarkBytes,
    receive: {
      maxMessages: count("receive.maxMessages", options.receive?.maxMessages ?? 256, 1),
      maxBytes: count("receive.maxBytes", options.receive?.maxBytes ?? 4 * MIB, 1),
    },
    maxPayloadBytes: count("maxPayloadBytes", options.maxPayloadBytes ?? 32 * MIB, 1),
    maxSendBytes: count("maxSendBytes", options.maxSendBytes ?? 32 * MIB, 1),
    perMessageDeflate: options.perMessageDeflate ?? false,
    closeTimeoutMs: time("closeTimeoutMs", options.closeTimeoutMs ?? 3_000, 1),
    onOpen: options.onOpen,
  };
}

function resolveKeepalive(
  options: Exclude<CellSocketOptions["keepalive"], false | undefined>,
): KeepalivePolicy {
  const request = pairText("keepalive.request", options.request ?? "ping");
  const response = pairText("keepalive.response", options.response ?? "pong");
  if (request === response) {
    throw new ConfigurationError(
      "keepalive.request and keepalive.response must differ, or an echo would pass for an answer",
    );
  }
  return {
    mode: options.mode ?? "auto-response",
    request,
    response,
    intervalMs: time("keepalive.intervalMs", options.intervalMs ?? 20_000, 1),
    timeoutMs: time("keepalive.timeoutMs", options.timeoutMs ?? 5_000, 1),
  };
}

function resolveReconnect(options: CellSocketOptions, refreshable: boolean): ReconnectPolicy {
  const reconnect = options.reconnect === false ? {} : (options.reconnect ?? {});
  return {
    enabled: options.reconnect !== false,
    refreshable,
    baseMs: time("reconnect.baseMs", reconnect.baseMs ?? 250, 1),
    maxMs: time("reconnect.maxMs", reconnect.maxMs ?? 15_000, 1),
    spreadMs: time("reconnect.spreadMs", reconnect.spreadMs ?? 1_000, 0),
    minUptimeMs: time("reconnect.minUptimeMs", reconnect.minUptimeMs ?? 5_000, 0),
    maxAttempts: count("reconnect.maxAttempts", reconnect.maxAttempts ?? Number.POSITIVE_INFINITY, 1),
    giveUpAfterMs: time("reconnect.giveUpAfterMs", reconnect.giveUpAfterMs ?? 0, 0),
  };
}

function resolveQueue(queue: Exclude<CellSocketOptions["queue"], undefined>): QueuePolicy {
  return {
    maxMessages: count("queue.maxMessages", queue.maxMessages ?? 256, 0),
    maxBytes: count("queue.maxBytes", queue.maxBytes ?? MIB, 0),
    maxAgeMs: time("queue.maxAgeMs", queue.maxAgeMs ?? 30_000, 1),
    overflow: queue.overflow ?? "throw",
  };
}

/** RFC 6455 §4.1: tokens, each at most once. */
function subprotocols(names: readonly string[]): readonly string[] {
  const bad = names.find(
    (name, at) => !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) || names.indexOf(name) !== at,
  );
  if (bad === undefined) return [...names];
  throw new ConfigurationError(`protocols: "${bad}" is not a token, or is there twice`);
}

function pairText(name: string, text: string): string {
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > 0 && sizeBytes <= MAX_PAIR_BYTES) return text;
  throw new ConfigurationError(`${name} must have 1 to ${MAX_PAIR_BYTES} UTF-8 bytes, not ${sizeBytes}`);
}

function time(name: string, value: number, least: number): number {
  if (value >= least && value <= MAX_TIMER_MS) return value;
  throw new ConfigurationError(
    `${name} must be between ${least} and ${MAX_TIMER_MS} milliseconds, not ${value}`,
  );
}

function count(name: string, value: number, least: number): number {
  if (value >= least) return value;
  throw new ConfigurationError(`${name} must be at least ${least}, not ${value}`);
}
