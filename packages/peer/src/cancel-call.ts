// Tells the owner of a call that its caller gave up (spec B5); the tunnel is cut anyway.

import { abortTarget } from "./abort-target.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { signRequest } from "./core/sign.ts";
import { tunnelVersion } from "./core/tunnel-names.ts";
import { exchange } from "./exchange.ts";
import type { InnerTarget } from "./inner-request.ts";
import { nonce } from "./random-ids.ts";
import type { Peer } from "./tunnel-pool.ts";

/** What a cancellation may take: nobody waits for it. */
const cancelBounds = { connectTimeoutMs: 1_000, totalTimeoutMs: 2_000, maxAnswerBytes: 4_096 };

/** Best effort: an owner that cannot be told sees the tunnel go. */
export function cancelCall(
  { node, address }: Peer,
  { scope, requestId }: InnerTarget,
  { self, key, timeMs }: { self: string; key: FleetKey; timeMs: number },
): void {
  const target = abortTarget(scope, requestId);
  const headers = signRequest({
    key,
    version: tunnelVersion,
    method: "POST",
    target,
    source: self,
    destination: node,
    timeMs,
    nonce: nonce(),
  });
  exchange(address, { method: "POST", target, headers }, cancelBounds).catch(() => undefined);
}
