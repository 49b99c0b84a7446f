// A fingerprint and tokens to compare others with.
import type { Credentials } from "../../src/core/credentials.ts";
import type { Fingerprint } from "../../src/fingerprint/fingerprint.ts";

const list = `sha256:${"ab".repeat(32)}`;
/** A fingerprint. */
export const own: Fingerprint = {
  version: 1,
  replica: "a",
  backends: list,
  ledger: "one",
  tokens: { client: "0001", backend: "0002", capability: "none" },
};
/** Of clients and of backends. */
export const tokens = ["client-token-of-this-test-1", "backend-token-of-this-test-1"] as const;
/** What a replica has of them. */
export const credentials: Credentials = {
  client: [Buffer.from(tokens[0])],
  backend: Buffer.from(tokens[1]),
  capability: [],
};
