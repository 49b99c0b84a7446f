/** First line of the text that a peer signs. */
export const signingDomain = "cells-peer-request-v1";

/** Generations of the protocol: 2 signs each call, 5 signs the establishment of a tunnel. */
export type PeerVersion = 2 | 5;

/** Names of the seven headers of a signed request, lower case as they are sent. */
export const peerHeader = {
  version: "x-cells-peer-version",
  source: "x-cells-peer-source",
  destination: "x-cells-peer-target",
  timestamp: "x-cells-peer-timestamp",
  nonce: "x-cells-peer-nonce",
  bodySha256: "x-cells-peer-body-sha256",
  signature: "x-cells-peer-signature",
} as const;

/** How far the sender's clock may be from the receiver's, both ways, inclusive. */
export const defaultWindowMs = 30_000;

/**
 * How long a receiver remembers a nonce at the default window: a request stamped a whole window ahead stays acceptable
 * for two windows.
 */
export const retentionWindows = 2;

/** How many nonces a receiver remembers: 60 s of 16,000 requests each second. */
export const defaultReplayCapacity = 1_000_000;

/** SHA-256 of no bytes: the body hash of every request without a body. */
export const emptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
