/** What a node says of itself to anybody: its `/state`, and whether it is being stopped. Nothing of it is proved. */
import { z } from "zod";
import type { PeerAddress } from "./connection.ts";
import { isPeerIdentity } from "./core/canonical.ts";
import { PeerNoAnswerError } from "./errors.ts";
import { type ExchangeAnswer, type ExchangeBounds, exchange } from "./exchange.ts";
import { probeBounds } from "./peer-probe.ts";

/** A node's own words. A member is undefined when it does not say. */
export interface NodeView {
  /** It answered at all, in time and in HTTP. */
  readonly answered: boolean;
  /** The answer looks like a node's. */
  readonly isNode: boolean;
  readonly node: string | undefined;
  readonly version: string | undefined;
  readonly draining: boolean | undefined;
  /** State of what runs the cells: `ready`, `starting`, … */
  readonly runtime: string | undefined;
}

/** The state lists every cell of a node, so that it may be long. */
const maxStateBytes = 8 * 1024 * 1024;

const shortText = z.string().max(200).optional().catch(undefined);
const stateSchema = z.object({
  ownership: z.string(),
  node: z.string().refine(isPeerIdentity).optional().catch(undefined),
  version: shortText,
  draining: z.boolean().optional().catch(undefined),
  runtime: z.object({ state: shortText }).optional().catch(undefined),
});
const drainingSchema = z.object({ draining: z.literal(true) });

/** How long a node may take for each answer. */
export interface ViewBounds {
  readonly answerTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Looks at a node.
 * @throws PeerUnreachableError (CELLKIT_PEER_UNREACHABLE), and the signal's reason
 */
export async function viewNode(address: PeerAddress, bounds: ViewBounds): Promise<NodeView> {
  const answer = await ask(address, "/state", bounds);
  const state = stateSchema.safeParse(json(answer));
  const said = state.success ? state.data : undefined;
  const draining =
    said?.draining ?? (answer === undefined ? undefined : await refusesAsDraining(address, bounds));
  return {
    answered: answer !== undefined,
    isNode: said !== undefined,
    node: said?.node,
    version: said?.version,
    runtime: said?.runtime?.state,
    draining,
  };
}

/** Nodes that do not say it in their state refuse all other paths while they are being stopped. */
async function refusesAsDraining(address: PeerAddress, bounds: ViewBounds): Promise<boolean | undefined> {
  const answer = await ask(address, "/__celld/no-such-path", bounds);
  if (answer === undefined) return undefined;
  return answer.status === 503 && drainingSchema.safeParse(json(answer)).success;
}

/** Undefined when it takes the connection but does not answer: the probe will tell more. */
async function ask(
  address: PeerAddress,
  target: string,
  { answerTimeoutMs, signal }: ViewBounds,
): Promise<ExchangeAnswer | undefined> {
  const all: ExchangeBounds = {
    connectTimeoutMs: probeBounds.connectTimeoutMs,
    totalTimeoutMs: answerTimeoutMs,
    maxAnswerBytes: maxStateBytes,
    signal,
  };
  try {
    return await exchange(address, { method: "GET", target, headers: {} }, all);
  } catch (error) {
    if (error instanceof PeerNoAnswerError) return undefined;
    throw error;
  }
}

function json(answer: ExchangeAnswer | undefined): unknown {
  try {
    return JSON.parse(answer?.text ?? "");
  } catch {
    return undefined;
  }
}
