import { readFileSync } from "node:fs";

/** A call to a router and its answer. Members that are not here set up what a mocked router does not have. */
interface HttpVector {
  readonly name: string;
  readonly backends: readonly string[];
  readonly ledgerBefore: readonly unknown[];
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
    readonly body: string;
  };
  readonly backendTranscript: readonly unknown[];
  readonly expect: { readonly status: number; readonly json?: unknown };
}

interface RequestVector {
  readonly name: string;
  readonly request: { readonly id: string };
  readonly problems: readonly { readonly code: string; readonly field: string }[];
}

interface Vectors {
  readonly tokens: { readonly client: string; readonly capability: string };
  readonly http: readonly HttpVector[];
  readonly requestValidation: readonly RequestVector[];
}

/** The parts of the shared vectors that concern this package. */
export const vectors = JSON.parse(
  readFileSync(new URL("../vectors/execution-vectors.json", import.meta.url), "utf8"),
) as Vectors;

const modelled = new Set([
  "name",
  "backends",
  "ledgerBefore",
  "request",
  "backendTranscript",
  "expect",
  "ledgerAfter",
]);

/** Those that a router answers by itself, from an empty ledger, with nothing else set up. */
export const ownAnswers = vectors.http.filter(
  (vector) =>
    vector.backendTranscript.length === 0 &&
    vector.ledgerBefore.length === 0 &&
    Object.keys(vector).every((member) => modelled.has(member)),
);
