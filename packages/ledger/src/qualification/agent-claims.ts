/** What an agent does with the ledger in its probe. */
import { LedgerAgentError, LedgerError } from "../errors.ts";
import type { StoredLedger } from "../ledger.ts";
import type { AgentAnswer, ClaimAnswer } from "./agent-protocol.ts";

/** A ledger of an agent, and the claims that go on until somebody ends them. */
export class AgentClaims {
  readonly #open: (options: { requireExisting: boolean }) => Promise<StoredLedger>;
  readonly #onAcknowledged: (id: string) => void;
  #ledger: StoredLedger | undefined;
  #going: { stopped: boolean; ended: Promise<string[]> } | undefined;

  /** @param onAcknowledged hears of each id at once, so that it is known even when the agent is killed next */
  constructor(
    open: (options: { requireExisting: boolean }) => Promise<StoredLedger>,
    onAcknowledged: (id: string) => void,
  ) {
    this.#open = open;
    this.#onAcknowledged = onAcknowledged;
  }

  async open(requireExisting: boolean): Promise<AgentAnswer<"open">> {
    await this.close();
    this.#ledger = await this.#open({ requireExisting });
    return { ledgerId: this.#ledger.ledgerId };
  }

  async claim(ids: readonly string[], body: string, owner: string): Promise<AgentAnswer<"claim">> {
    const ledger = this.#opened();
    return { answers: await Promise.all(ids.map((id) => claimOne(ledger, id, body, owner))) };
  }

  /** Claims `prefix-0`, `prefix-1`, … one after the other until `claimed`. */
  claimOn(prefix: string, body: string, owner: string): void {
    const ledger = this.#opened();
    const going = { stopped: false, ended: Promise.resolve<string[]>([]) };
    going.ended = (async () => {
      const ids: string[] = [];
      for (let at = 0; !going.stopped; at++) {
        const id = `${prefix}-${at}`;
        const answer = await claimOne(ledger, id, body, owner);
        // Busy or unavailable: the next round claims another one.
        if (answer.kind !== "new") continue;
        ids.push(id);
        this.#onAcknowledged(id);
      }
      return ids;
    })();
    this.#going = going;
  }

  async claimed(): Promise<AgentAnswer<"claimed">> {
    const going = this.#going;
    if (going === undefined) return { ids: [] };
    going.stopped = true;
    return { ids: await going.ended };
  }

  async lookup(ids: readonly string[]): Promise<AgentAnswer<"lookup">> {
    const ledger = this.#opened();
    return {
      owners: await Promise.all(ids.map(async (id) => (await ledger.lookup(id))?.backend ?? null)),
    };
  }

  async count(): Promise<AgentAnswer<"count">> {
    return { count: await this.#opened().count() };
  }

  async close(): Promise<void> {
    await this.claimed();
    this.#going = undefined;
    await this.#ledger?.close();
    this.#ledger = undefined;
  }

  #opened(): StoredLedger {
    if (this.#ledger === undefined) throw new LedgerAgentError("this agent", "no ledger was opened yet");
    return this.#ledger;
  }
}

async function claimOne(ledger: StoredLedger, id: string, body: string, owner: string): Promise<ClaimAnswer> {
  try {
    const claim = await ledger.claim(id, body, async () => owner);
    return "owner" in claim ? { kind: claim.kind, backend: claim.owner.backend } : { kind: claim.kind };
  } catch (error) {
    const code = error instanceof LedgerError ? error.code : "unexpected";
    return { kind: "error", code, message: error instanceof Error ? error.message : String(error) };
  }
}
