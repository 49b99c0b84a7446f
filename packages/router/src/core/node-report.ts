// What dispatchers say of their nodes (execution API, sections 4.3, 7.2 and 7.3). Unsigned 64-bit figures keep their digits. A body is
// read with `parseExactJson` and not with the client's `parseJson`: the original takes an answer in which a member that it does not know
// comes twice, and a dispatcher that worked with it must not look lost.
import {
  isCompatible,
  type NodeFigures,
  type NodeReport,
  nodeFiguresSchema,
  nodeReportSchema,
  parseExactJson,
} from "@cellkit/execution/contract";
import { z } from "zod";

/** The report in an answer's body; undefined where it is none, or none that this protocol can rely on. */
export function parseReport(body: string): NodeReport | undefined {
  const { data } = nodeReportSchema.safeParse(parsed(body));
  return data !== undefined && isCompatible(data) ? data : undefined;
}

/** What a health probe showed. */
export interface BackendHealth {
  /** Whether new work may go there. */
  readonly healthy: boolean;
  /** The node's own figures; undefined from dispatchers that do not give them all. */
  readonly node: NodeFigures | undefined;
}

/** The health of a backend that could not be asked. */
export const unhealthy: BackendHealth = { healthy: false, node: undefined };

const health = z.object({ ok: z.literal(true), kvm: z.literal(true) });
const healthNode = z.object({ node: nodeFiguresSchema });

/** Healthy means status 200, and both `ok` and `kvm` true; other members do not count. */
export function parseHealth(status: number, body: string): BackendHealth {
  const value = parsed(body);
  return {
    healthy: status === 200 && health.safeParse(value).success,
    node: healthNode.safeParse(value).data?.node,
  };
}

function parsed(body: string): unknown {
  try {
    return parseExactJson(body);
  } catch {
    return undefined;
  }
}
