/** What a socket test opens, and closes again whatever happens. */
import { afterEach } from "vitest";
import { CellSocket } from "../../src/cell-socket.ts";
import type { CellSocketOptions, SocketTarget } from "../../src/cell-socket-options.ts";
import { Fleet } from "../../src/fleet.ts";
import type { FleetOptions } from "../../src/options.ts";
import { SocketNodeServer } from "./socket-node.ts";

/** What is to succeed may take its time, on a machine that does something else for seconds. */
const PATIENT: CellSocketOptions = { closeTimeoutMs: 20_000, handshakeTimeoutMs: 20_000 };

let opened: AsyncDisposable[] = [];

afterEach(async () => {
  const things = opened;
  opened = [];
  // All at once: a socket whose peer says nothing is over when its node is gone, without a wait for its goodbye.
  await Promise.all(things.map((thing) => thing[Symbol.asyncDispose]()));
});

/** Disposes of the thing after the test. */
export function keep<Thing extends AsyncDisposable>(thing: Thing): Thing {
  opened.push(thing);
  return thing;
}

export async function startNode(options: { autoPong?: boolean } = {}): Promise<SocketNodeServer> {
  return keep(await SocketNodeServer.start(options));
}

/** A fleet that asks its nodes in the order given, and whose dice always show 0: no delay but a floor. */
export function fleetOf(urls: string[], options: Partial<FleetOptions> = {}): Fleet {
  return keep(
    new Fleet({
      authority: "http://app.internal",
      endpoints: urls,
      select: (candidates) => candidates[0],
      internals: { random: () => 0 },
      ...options,
    }),
  );
}

export function socketTo(
  fleet: Fleet,
  options: CellSocketOptions = {},
  target: SocketTarget = "/room?x=1",
): CellSocket {
  return keep(new CellSocket(fleet, target, { ...PATIENT, ...options }));
}

/** Names of all events but messages, in the order in which they came. */
export function eventsOf(socket: CellSocket): string[] {
  const names: string[] = [];
  for (const name of ["open", "reconnecting", "error", "close"] as const) {
    socket.addEventListener(name, () => names.push(name));
  }
  return names;
}
