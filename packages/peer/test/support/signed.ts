import { FleetKey } from "../../src/core/fleet-key.ts";
import { type RequestToSign, signRequest } from "../../src/core/sign.ts";
import type { ReceivedRequest } from "../../src/core/verifier.ts";

export const nowMs = 1_767_225_600_000;
export const self = "node_00112233445566778899aabbccddeeff";
export const peer = "node_0f1e2d3c4b5a69788796a5b4c3d2e1f0";
export const fleetKey = new FleetKey(Buffer.alloc(32, 7));
export const otherKey = new FleetKey(Buffer.alloc(32, 8));

export function nonceOf(number: number): string {
  return number.toString(16).padStart(32, "0");
}

/** A request to `self` as its receiver sees it. */
export function signedRequest(change: Partial<RequestToSign> = {}): ReceivedRequest {
  const request = {
    key: fleetKey,
    version: 5,
    method: "GET",
    target: "/peer/probe",
    source: peer,
    destination: self,
    timeMs: nowMs,
    nonce: nonceOf(1),
    ...change,
  } as const;
  const { method, target, body } = request;
  return { method, target, headers: Object.entries(signRequest(request)), body };
}

/** The same request with one header changed, left out (undefined) or given twice (a pair). */
export function withHeader(
  request: ReceivedRequest,
  name: string,
  value: string | undefined | readonly [string, string],
): ReceivedRequest {
  const others = request.headers.filter(([given]) => given !== name);
  const values = value === undefined ? [] : typeof value === "string" ? [value] : value;
  return { ...request, headers: [...others, ...values.map((one) => [name, one] as const)] };
}
