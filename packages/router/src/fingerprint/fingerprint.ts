// What a replica leaves beside the ledger, so that replicas with another list or other tokens are noticed. It says whether two replicas
// have the same, and nothing of what they have.
import { z } from "zod";

/** What replicas must have in common. */
export const fingerprintParts = ["backends", "ledger", "client", "backend", "capability"] as const;

type FingerprintPart = (typeof fingerprintParts)[number];

/** One replica's fingerprint. */
export interface Fingerprint {
  readonly version: 1;
  readonly replica: string;
  /** SHA-256 over the configured list, its order, the name of discovery and the mode. */
  readonly backends: string;
  /** The id of the ledger that it has open, which another may have taken the place of. Absent: it is of a version that does not tell. */
  readonly ledger?: string | undefined;
  /** Generations of the tokens in use; see `tokenGeneration`. Absent while the replica cannot use its tokens. */
  readonly tokens?:
    | { readonly client: string; readonly backend: string; readonly capability: string }
    | undefined;
}

/** A part in which another replica is different. */
export interface Mismatch {
  readonly replica: string;
  readonly part: FingerprintPart;
}

/** The longest note, in bytes. */
export const maxNoteBytes = 4_096;

const generation = z.string().regex(/^[0-9a-f]{4}(\+[0-9a-f]{4}){0,3}$|^none$/);
const schema = z.object({
  version: z.literal(1),
  replica: z.string().min(1).max(48),
  backends: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  ledger: z.string().min(1).max(64).optional(),
  tokens: z.object({ client: generation, backend: generation, capability: generation }).optional(),
});

/** The text of a fingerprint. */
export function formatFingerprint(fingerprint: Fingerprint): string {
  return `${JSON.stringify(fingerprint)}\n`;
}

/** Reads one; undefined for what is none, which other versions and strangers may have left. */
export function parseFingerprint(text: string): Fingerprint | undefined {
  if (text.length > maxNoteBytes) return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/**
 * In which parts others are different. Tokens that one of the two cannot use are compared by nobody; nor are those of replicas on two ledgers,
 * since their generations are salted by the ledger's id.
 */
export function mismatchesOf(own: Fingerprint, others: readonly Fingerprint[]): Mismatch[] {
  return others.flatMap((other) => {
    const { replica } = other;
    const parts: FingerprintPart[] = own.backends === other.backends ? [] : ["backends"];
    const { tokens, ledger = own.ledger } = other;
    if (own.ledger !== undefined && own.ledger !== ledger) parts.push("ledger");
    else if (own.tokens !== undefined && tokens !== undefined)
      for (const role of ["client", "backend", "capability"] as const)
        if (own.tokens[role] !== tokens[role]) parts.push(role);
    return parts.map((part) => ({ replica, part }));
  });
}
