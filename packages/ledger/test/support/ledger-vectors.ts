/** The part of the published vectors that concerns ledgers. */
import { readFileSync } from "node:fs";

/** One step of an outcome; which members there are depends on `op`. */
export interface VectorStep {
  op: "claim" | "lookup" | "retire" | "sweep" | "setAge" | "reopen";
  id?: string;
  body?: string;
  choose?: string;
  outcome?: string;
  backend?: string | null;
  seconds?: number;
  removed?: boolean | number;
}

interface Vectors {
  backendUrls: { url: string; address: string | null }[];
  ledger: {
    fileNames: { id: string; record: string; retired: string }[];
    bodyHashes: { body: string; body_hash: string }[];
    records: { id: string; body: string; backend: string; file: string; bytes: string; length: number }[];
    readChecks: { name: string; text: string; valid: boolean }[];
    outcomes: { note: string; steps: VectorStep[] }[];
  };
}

export const vectors = JSON.parse(
  readFileSync(new URL("../vectors/execution-vectors.json", import.meta.url), "utf8"),
) as Vectors;
