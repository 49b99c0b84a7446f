/** Why a node refuses a signature: a wrong key and a wrong clock get the same answer, 401. */
import { defaultWindowMs } from "./core/constants.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { findShift } from "./find-shift.ts";
import { keyFingerprint } from "./fleet-keys.ts";
import type { ProbeAnswer } from "./peer-probe.ts";

/** What was found out. */
export interface Reason {
  readonly verdict: "wrong-key" | "clock-skew";
  readonly detail: string;
  readonly skewMs?: number;
}

/** What a node's record tells of its clock. */
export interface ClockHints {
  readonly expiresMs?: number | undefined;
  readonly load?: { readonly sampledMs: number } | undefined;
}

/** Key or clock: asks again with what would be accepted if only one of them were wrong. */
export async function whyUnauthorized(
  answer: ProbeAnswer,
  target: ClockHints,
  keys: readonly FleetKey[],
  ask: (key: FleetKey, shiftMs?: number) => Promise<ProbeAnswer>,
): Promise<Reason> {
  const [key, ...others] = keys;
  const accepts = async (shiftMs: number): Promise<boolean> =>
    key !== undefined && isAccepted(await ask(key, shiftMs));
  const { skewMs } = answer;
  const told = skewMs !== undefined && Math.abs(skewMs) > defaultWindowMs - 1_000;
  if (told && (await accepts(skewMs))) return skewed(skewMs);
  for (const other of others)
    if (isAccepted(await ask(other, told ? skewMs : 0)))
      return {
        verdict: "wrong-key",
        detail: `it accepts the key ${keyFingerprint(other)} of the rotation only: it does not follow the rotation`,
      };
  if (told)
    return {
      verdict: "wrong-key",
      detail: `its fleet key is another one, and its clock is ${offBy(skewMs)}`,
    };
  if (skewMs === undefined) {
    const foundMs = await findShift(accepts, defaultWindowMs, hints(target));
    if (foundMs !== undefined) return skewed(foundMs);
  }
  return {
    verdict: "wrong-key",
    detail: `its fleet key is another one${skewMs === undefined ? ", or its clock is off by more than 5 minutes" : ""}: does it use this bucket and prefix, and was it restarted since the key changed?`,
  };
}

function skewed(skewMs: number): Reason {
  return {
    verdict: "clock-skew",
    skewMs,
    detail: `its clock is ${offBy(skewMs)} of this machine's; at most 30 s are accepted: set the one that is wrong`,
  };
}

/** What a live record tells of its writer's clock: it is renewed every few seconds, for 10 s by default. */
function hints({ expiresMs, load }: ClockHints): number[] {
  const nowMs = Date.now();
  return [
    ...(expiresMs === undefined ? [] : [expiresMs - 10_000 - nowMs]),
    ...(load === undefined ? [] : [load.sampledMs - nowMs]),
  ];
}

function isAccepted(answer: ProbeAnswer): boolean {
  return answer.status === 200 || isWrongTarget(answer);
}

/** Of the two refusals with 409, the one that a holder of the right key gets. */
export function isWrongTarget({ status, text }: ProbeAnswer): boolean {
  return status === 409 && text.includes("different node");
}

function offBy(skewMs: number): string {
  return `${seconds(Math.abs(skewMs))} ${skewMs < 0 ? "behind" : "ahead"}`;
}

/** A span for people. */
export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
