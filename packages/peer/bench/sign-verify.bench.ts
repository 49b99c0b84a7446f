// What the protocol costs beside its cryptography: a request signed and verified, beside the two SHA-256 and the two
// HMAC that this takes, made by the same calls of node:crypto and nothing else.
import { createHash, createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import { FleetKey } from "../src/core/fleet-key.ts";
import { signRequest } from "../src/core/sign.ts";
import { RequestVerifier } from "../src/core/verifier.ts";

const REQUEST_COUNT = 20_000;
const BODY_BYTES = 256;
const NOW_MS = 1_767_225_600_000;

const keyBytes = Buffer.alloc(32, 7);
const body = Buffer.alloc(BODY_BYTES, "a body of a call ");
const target = "/__do/Room:f6dbe42ec24966ff357d9c3b14d777cd235cd058be35eab25f8873c3849c145f";
const source = "node_0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const destination = "node_00112233445566778899aabbccddeeff";

/** Small, so that waiting requests do not grow old in memory. */
const BATCH_COUNT = 100;
const batches = Array.from({ length: REQUEST_COUNT / BATCH_COUNT }, (_, batch) =>
  Array.from({ length: BATCH_COUNT }, (_, i) => (batch * BATCH_COUNT + i).toString(16).padStart(32, "0")),
);
const common = [["host", "10.0.0.12:8081"] as const, ["content-length", String(BODY_BYTES)] as const];

/** CPU time in microseconds: other processes of the machine do not count. */
function cpuOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function signAndVerify(): number {
  const key = new FleetKey(keyBytes);
  const verifier = new RequestVerifier({ keys: [key], version: 2, self: destination });
  let cpu = 0;
  for (const batch of batches) {
    let signed: ReturnType<typeof signRequest>[] = [];
    cpu += cpuOf(() => {
      signed = batch.map((nonce) =>
        signRequest({
          key,
          version: 2,
          method: "POST",
          target,
          body,
          source,
          destination,
          timeMs: NOW_MS,
          nonce,
        }),
      );
    });
    // What an HTTP parser makes of them, out of both figures.
    const received = signed.map((headers) => [...common, ...Object.entries(headers)]);
    cpu += cpuOf(() => {
      for (const headers of received) {
        const verdict = verifier.verify({ method: "POST", target, headers, body }, NOW_MS);
        if (!verdict.ok) throw new TypeError(`a good request was refused: ${verdict.error}`);
      }
    });
  }
  return REQUEST_COUNT / (cpu / 1e6);
}

function cryptographyOnly(): number {
  const secret = createSecretKey(keyBytes);
  // As long as the text that is signed: 9 fields.
  const text = "x".repeat(21 + 1 + 4 + target.length + 64 + source.length + destination.length + 13 + 32 + 8);
  const cpu = cpuOf(() => {
    for (let i = 0; i < REQUEST_COUNT; i += 1) {
      createHash("sha256").update(body).digest("hex");
      const signature = createHmac("sha256", secret).update(text).digest("hex");
      createHash("sha256").update(body).digest("hex");
      const again = createHmac("sha256", secret).update(text).digest();
      if (!timingSafeEqual(again, Buffer.from(signature, "hex")))
        throw new TypeError("HMAC differs from itself");
    }
  });
  return REQUEST_COUNT / (cpu / 1e6);
}

export const benchmarks = [
  {
    name: "peer/sign-verify",
    subject: "signRequest and RequestVerifier.verify",
    against:
      "two SHA-256 and two HMAC-SHA-256 of node:crypto with a key object, and a constant-time comparison",
    unit: "requests/CPU s",
    roundCount: 15,
    conditions: `body of ${BODY_BYTES} bytes, one key, fresh nonce each, one process`,
    setup: async () => ({
      subject: async () => signAndVerify(),
      against: async () => cryptographyOnly(),
      close: async () => undefined,
    }),
  },
];
