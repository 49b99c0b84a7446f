/** Histories that nobody ran: small, with many ambiguous calls, about half of them impossible. One key is one history. */
import type { HistoryAnswer, HistoryOperation } from "../../src/conformance/history.ts";
import { randomNumbers } from "./random.ts";

const HASHES = ["blake3:aa", "blake3:bb"] as const;

export function randomHistories({ count, seed }: { count: number; seed: number }): HistoryOperation[] {
  const random = randomNumbers(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const hash = () => HASHES[random() < 0.85 ? 0 : 1];
  return Array.from({ length: count }, (_, history) => {
    const key = history.toString(16).padStart(64, "0");
    const length = 1 + below(6);
    /** Around these times an honest ledger's record would have been made. */
    const madeAt = below(12);
    const winner = below(length);
    return Array.from({ length }, (_, client): HistoryOperation => {
      const calledUs = below(12);
      const endUs = calledUs + below(8);
      const kind = random() < 0.7 ? "claim" : random() < 0.7 ? "lookup" : "restore";
      const bodyHash = hash();
      const backend = `http://n${client}`;
      const asked =
        kind === "lookup" ? {} : { bodyHash, ...(kind === "claim" && random() < 0.2 ? {} : { backend }) };
      const seen = { backend: `http://n${random() < 0.9 ? winner : below(length)}`, bodyHash: hash() };
      const answer = ((): HistoryAnswer | null => {
        const is = random();
        if (is < 0.1) return null;
        if (is < 0.2) return { kind: "maybe" };
        if (is < 0.25) return { kind: "unchanged" };
        const isMade = random() < 0.1 ? random() < 0.5 : endUs >= madeAt;
        if (kind === "lookup") return isMade ? { kind: "found", ...seen } : { kind: "absent" };
        if (!isMade) return { kind: "full" };
        if (client === winner || random() < 0.03)
          return { kind: kind === "claim" ? "new" : "added", backend, bodyHash };
        if (random() < 0.2) return { kind: "conflict" };
        return kind === "claim" ? { kind: "existing", ...seen } : { kind: "present", backend, bodyHash };
      })();
      return { client: String(client), kind, key, ...asked, calledUs, returnedUs: answer && endUs, answer };
    });
  }).flat();
}
