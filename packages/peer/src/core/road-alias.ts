/**
 * Loopback aliases, by which an engine's processes dial each other while relays carry what they say: each node has one of
 * its own, claimed by a record in the fleet's store. What a claim looks like, and in which order a node tries them.
 */
import { createHash } from "node:crypto";
import { z } from "zod";

/** Aliases are 127.77.1.1 to 127.77.254.254: loopback, so nothing that is sent to one ever leaves the machine. */
const network = "127.77.";
const leastPart = 1;
const partCount = 254;

/** How many aliases a node tries before it gives up. */
export const maxAliasTries = 256;

/** A claim is respected this long before its node has written a record, in milliseconds. */
export const aliasGraceMs = 60_000;

/** Who has an alias. */
export interface AliasClaim {
  /** Session id of the node; empty when it gave the alias back. */
  readonly node: string;
  /** When it was claimed, by the node's clock, in milliseconds since the Unix epoch. */
  readonly claimedMs: number;
}

const claimSchema = z.object({
  node: z.string().regex(/^[A-Za-z0-9_.-]{0,128}$/),
  claimed_ms: z.int().min(0),
});

/** Where the claim of an alias is. */
export function aliasKey(alias: string): string {
  return `cellkit/aliases/${alias}.json`;
}

/** Whether a textual IPv4 address, also in its IPv6-mapped form, is an alias. Answers the alias itself. */
export function roadAliasOf(address: string | undefined): string | undefined {
  const plain = address?.replace(/^::ffff:/, "") ?? "";
  const parts = /^127\.77\.(\d{1,3})\.(\d{1,3})$/.exec(plain)?.slice(1).map(Number);
  return parts?.every((part) => part >= leastPart && part < leastPart + partCount) ? plain : undefined;
}

/** The aliases that a node tries, in this order. A node of the same name begins with the same one. */
export function aliasesFor(node: string): string[] {
  const first = createHash("sha256").update(node).digest().readUInt32BE(0);
  return Array.from({ length: maxAliasTries }, (_, index) => {
    const slot = (first + index) % (partCount * partCount);
    return `${network}${leastPart + Math.floor(slot / partCount)}.${leastPart + (slot % partCount)}`;
  });
}

/** A claim as text. The salt makes each one another object for conditional writes. */
export function formatAliasClaim({ node, claimedMs }: AliasClaim, salt: string): string {
  return JSON.stringify({ node, claimed_ms: claimedMs, salt });
}

/** Reads a claim; undefined for what is none. Such an object is never taken over. */
export function parseAliasClaim(body: Uint8Array): AliasClaim | undefined {
  try {
    const { node, claimed_ms } = claimSchema.parse(JSON.parse(new TextDecoder().decode(body)));
    return { node, claimedMs: claimed_ms };
  } catch {
    // Whoever wrote this wrote no claim; the caller leaves it alone.
    return undefined;
  }
}
