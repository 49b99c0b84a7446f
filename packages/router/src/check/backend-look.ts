// One look at a dispatcher: its health and its report, each over a connection of its own. Both only read.
import { isIPv6, type LookupFunction } from "node:net";
import type { NodeFigures } from "@cellkit/execution/contract";
import { Dispatchers } from "../backend/dispatchers.ts";
import type { BackendCallKind } from "../router-event.ts";
import { defaultLimits } from "../router-limits.ts";

/** What became of a call: a status, or why there was none. */
export interface CallEnd {
  readonly status: number | undefined;
  readonly problem: string | undefined;
}

/** What was seen of a dispatcher. */
export interface BackendLook {
  /** `GET /v1/health`, which dispatchers answer to everybody. */
  readonly health: CallEnd;
  /** `GET /v1/capabilities`, which they answer to those with their token. */
  readonly report: CallEnd;
  /** Whether new work would go there. */
  readonly healthy: boolean;
  /** The nodes that the answers named: one for each answer that did, since each came over a connection of its own. */
  readonly nodes: readonly NodeFigures[];
  /** Of the program, where the report is a compatible one. */
  readonly binaryVersion: string | undefined;
}

const notAsked: CallEnd = { status: undefined, problem: "was not asked" };

/**
 * Looks at a dispatcher, in at most some 25 seconds. Never rejects.
 * @param options `address`: connect to this IP address, whatever the origin's name resolves to
 */
export async function lookAtBackend(
  origin: string,
  token: Uint8Array,
  { signal, address }: { signal: AbortSignal; address?: string | undefined },
): Promise<BackendLook> {
  const ends = new Map<BackendCallKind, CallEnd>();
  const dispatchers = new Dispatchers({
    bounds: defaultLimits,
    lookup: address === undefined ? undefined : lookupOf(address),
    signal,
    emit: (event) => {
      if (event.kind === "backend") ends.set(event.call, event);
    },
  });
  const { healthy, node } = await dispatchers.health(origin, token);
  const report = await dispatchers.report(origin, token);
  return {
    health: endOf(ends.get("health")),
    report: endOf(ends.get("capabilities")),
    healthy,
    nodes: [node, report?.node].filter((each) => each !== undefined),
    binaryVersion: report?.binaryVersion,
  };
}

function endOf(end: CallEnd | undefined): CallEnd {
  return end === undefined ? notAsked : { status: end.status, problem: end.problem };
}

/** Every name has this one address. */
function lookupOf(address: string): LookupFunction {
  const family = isIPv6(address) ? 6 : 4;
  return (_name, { all }, callback) => {
    if (all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
