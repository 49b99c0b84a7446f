/**
 * What a socket publishes through `node:diagnostics_channel`. A message is built only when somebody listens.
 *
 * - `fleet:ws:open` `{ node, attempt, resumed }`; `fleet:ws:close` `{ node, code, reason }`: each connection
 * - `fleet:ws:reconnect` `{ attempt, delayMs }`: a dial is planned
 * - `fleet:ws:ping` `{ node, rttMs }`, or once `{ node, misconfigured: true }`: the pair is not registered in the cell
 * - `fleet:ws:migrate` `{ node }`: the connection to that node is being left
 * - `fleet:ws:discard` `{ data, reason: "overflow" | "expired" | "closed" }`: a queued message will not be sent
 */
import { type Channel, channel } from "node:diagnostics_channel";

const channels = {
  open: channel("fleet:ws:open"),
  close: channel("fleet:ws:close"),
  reconnect: channel("fleet:ws:reconnect"),
  ping: channel("fleet:ws:ping"),
  migrate: channel("fleet:ws:migrate"),
  discard: channel("fleet:ws:discard"),
} satisfies Record<string, Channel>;

/** Publishes on `fleet:ws:<name>`, when that channel has a subscriber. */
export function publish(name: keyof typeof channels, message: Record<string, unknown>): void {
  const target = channels[name];
  if (target.hasSubscribers) target.publish(message);
}
