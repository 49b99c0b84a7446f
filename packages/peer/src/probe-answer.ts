/** The answering side of the signed probe, for both generations of the protocol: no I/O, to be mounted on any server. */
import type { KeyObject } from "node:crypto";
import { type PeerVersion, peerHeader } from "./core/constants.ts";
import { isProbeChallenge, probeChallengeHeader, signProbe } from "./core/probe.ts";
import type { ReceivedHead, RequestVerifier } from "./core/verifier.ts";

/** Who answers: what the node's record says, and the key that proves it. */
export interface ProbeIdentity {
  readonly node: string;
  /** `host:port`, as in the record. */
  readonly advertise: string;
  /** Ed25519. */
  readonly privateKey: KeyObject;
}

/** How to answer. */
export interface AnswerProbeOptions {
  /** Of the same generation as `version`; the one that judges the node's other requests too. */
  readonly verifier: RequestVerifier;
  readonly version: PeerVersion;
  readonly identity: ProbeIdentity;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: number;
}

/** What to answer. */
export interface ProbeReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Answers a request to {@link probePath}. Its body is not needed: the signature of a request with one does not fit. Every
 * answer says this node's time (`date`), so that a refused peer sees how far its clock is off.
 */
export function answerProbe(request: ReceivedHead, options: AnswerProbeOptions): ProbeReply {
  const { verifier, version, identity, nowMs } = options;
  const reply = (status: number, body: string): ProbeReply => ({
    status,
    headers: {
      "content-type": "application/json",
      date: new Date(nowMs).toUTCString(),
      [peerHeader.version]: String(version),
    },
    body,
  });
  const verdict = verifier.verify(request, nowMs);
  if (!verdict.ok) return reply(verdict.status, verdict.message);
  if (request.method !== "GET") return reply(405, "method not allowed");
  const challenges = request.headers.filter(([name]) => name.toLowerCase() === probeChallengeHeader);
  const challenge = challenges[0]?.[1];
  if (challenge === undefined) return reply(400, "missing probe challenge");
  if (challenges.length > 1 || !isProbeChallenge(challenge)) return reply(400, "invalid probe challenge");
  const { node, advertise, privateKey } = identity;
  const signature = signProbe({ node, advertise, challenge }, privateKey);
  return reply(200, JSON.stringify({ version: 1, node, advertise, challenge, signature }));
}
