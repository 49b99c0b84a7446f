/**
 * The signed probe: proves to a holder of the fleet key that the process which wrote a node's record answers at the
 * address in it. Both generations of the protocol have it, under different paths; the answer is the same.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { PeerAddress } from "./connection.ts";
import { type PeerVersion, peerHeader } from "./core/constants.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { probeChallengeHeader, verifyProbe } from "./core/probe.ts";
import { signRequest } from "./core/sign.ts";
import { type ExchangeAnswer, exchange } from "./exchange.ts";
import { nonce } from "./random-ids.ts";

/** Path of the probe, by the generation of the protocol. */
export const probePath = { 2: "/__celld/probe", 5: "/peer/probe" } as const satisfies Record<
  PeerVersion,
  string
>;

/** Bounds of a probe, as the protocol gives them. */
export const probeBounds = { connectTimeoutMs: 3_000, totalTimeoutMs: 5_000, maxAnswerBytes: 4_096 } as const;

/** Whom a probe asks. */
export interface ProbeTarget {
  readonly address: PeerAddress;
  /** The node that is meant. */
  readonly node: string;
}

/** How it asks. */
export interface ProbeOptions {
  readonly version: PeerVersion;
  readonly key: FleetKey;
  /** Who asks. @default "diagnostic" */
  readonly self?: string;
  /** Added to the clock when signing: finds out whether a node would accept another time. @default 0 */
  readonly shiftMs?: number;
  /** How long the answer may take. @default 5_000 */
  readonly answerTimeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** What was answered to a probe. */
export interface ProbeAnswer extends ExchangeAnswer {
  readonly challenge: string;
  /** `x-cells-peer-version` of the answer. */
  readonly version: string | undefined;
  /** How far the node's clock is ahead of this one, to a second, by the answer's `Date`; undefined without one. */
  readonly skewMs: number | undefined;
}

/** What is wrong with an answer that should prove something. */
export type ProofFault = "malformed" | "other-node" | "other-address" | "other-process";

/** What the answer must agree with: the node's record, or what is known of it. */
export interface ProbeExpectation {
  readonly node?: string | undefined;
  /** `host:port` as in the record. */
  readonly addr?: string | undefined;
  /** Without it nothing is proved. */
  readonly probePublicKey?: string | undefined;
}

const answerSchema = z.object({
  version: z.literal(1),
  node: z.string(),
  advertise: z.string(),
  challenge: z.string(),
  signature: z.string().regex(/^[0-9a-f]{128}$/),
});

/**
 * Asks once.
 * @throws PeerUnreachableError, PeerNoAnswerError, and the signal's reason
 */
export async function probeNode(target: ProbeTarget, options: ProbeOptions): Promise<ProbeAnswer> {
  const { version, key, self = "diagnostic", shiftMs = 0, signal } = options;
  const { answerTimeoutMs: totalTimeoutMs = probeBounds.totalTimeoutMs } = options;
  const challenge = randomBytes(32).toString("hex");
  const signed = signRequest({
    key,
    version,
    method: "GET",
    target: probePath[version],
    source: self,
    destination: target.node,
    timeMs: Math.round(Date.now() + shiftMs),
    nonce: nonce(),
  });
  const answer = await exchange(
    target.address,
    { method: "GET", target: probePath[version], headers: { ...signed, [probeChallengeHeader]: challenge } },
    { ...probeBounds, totalTimeoutMs, signal },
  );
  const date = answer.header("date");
  const dateMs = date === undefined ? Number.NaN : Date.parse(date);
  // `Date` is cut to the second: half of one is the better guess.
  const skewMs = Number.isNaN(dateMs) ? undefined : Math.round(dateMs + 500 - answer.atMs);
  return { ...answer, challenge, version: answer.header(peerHeader.version), skewMs };
}

/** Where an answer of status 200 disagrees with what is known; undefined when it does not. */
export function faultOfProof(
  answer: Pick<ProbeAnswer, "text" | "challenge">,
  expected: ProbeExpectation,
): ProofFault | undefined {
  let json: unknown;
  try {
    json = JSON.parse(answer.text);
  } catch {
    return "malformed";
  }
  const { success, data } = answerSchema.safeParse(json);
  if (!success || data.challenge !== answer.challenge) return "malformed";
  if (expected.node !== undefined && data.node !== expected.node) return "other-node";
  if (expected.addr !== undefined && data.advertise !== expected.addr) return "other-address";
  if (expected.probePublicKey === undefined) return undefined;
  const { node, advertise, challenge, signature } = data;
  const { probePublicKey: publicKeyHex } = expected;
  return verifyProbe({ node, advertise, challenge, signature, publicKeyHex }) ? undefined : "other-process";
}
