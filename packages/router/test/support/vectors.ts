// The vectors of the specification, as far as a router is concerned.
import { readFileSync } from "node:fs";

/** A record in the ledger's directory. */
interface RecordVector {
  readonly ledger: string;
  readonly file: string;
  readonly record: { readonly version: number; readonly backend: string; readonly body_hash: string };
}

/** One call that the router must make, and its answer; null closes without one. */
export interface CallVector {
  readonly backend: string;
  readonly method: string;
  readonly path: string;
  readonly bearer: TokenName;
  readonly bodyIsExactRequestBytes?: boolean;
  readonly reply: { readonly status: number; readonly json: unknown } | null;
}

interface Expectation {
  readonly status: number;
  readonly json?: unknown;
  readonly jsonSubset?: Record<string, unknown>;
}

export interface HttpVector {
  readonly name: string;
  readonly backends: readonly string[];
  readonly capacity?: number;
  readonly lockHeldElsewhere?: boolean;
  readonly tokenFiles?: Partial<Record<TokenName, string>>;
  readonly ledgerBefore?: readonly RecordVector[];
  readonly ledgerAfter?: readonly RecordVector[];
  readonly rawFilesBefore?: readonly { readonly file: string; readonly text: string }[];
  readonly rawFilesAfter?: readonly { readonly file: string; readonly text: string }[];
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
    readonly body: string;
  };
  readonly backendTranscript: readonly CallVector[];
  readonly backendTranscriptUnordered?: boolean;
  readonly expect: Expectation;
}

export interface RawVector {
  readonly name: string;
  readonly request: string;
  readonly halfCloseAfterWrite?: boolean;
  readonly expect: Expectation | { readonly closedWithoutReply: true };
}

export type TokenName = "client" | "backend" | "capability" | "parent" | "scoped";

export const vectors = JSON.parse(
  readFileSync(new URL("../vectors/execution-vectors.json", import.meta.url), "utf8"),
) as {
  readonly tokens: Record<TokenName, string>;
  readonly http: readonly HttpVector[];
  readonly raw: readonly RawVector[];
  readonly fnv1a: readonly { id: string; fnv1a64Hex: string; index: Record<string, number> }[];
  readonly tokenFiles: readonly { name: string; fileBase64: string; valid: boolean; token: string | null }[];
  readonly backendUrls: readonly { url: string; address: string | null }[];
  readonly executionIds: readonly { id: string; routerAccepts: boolean }[];
  readonly capabilities: {
    readonly nodeEligibility: readonly { name: string; node: unknown; eligible: boolean }[];
  };
};
