// A fleet store in memory that can be made to fail as real ones do.
import { createHash } from "node:crypto";
import type { FleetObject, FleetWrite, NodeStore } from "../../src/fleet-store.ts";

/** What becomes of the next write of a key: it is lost on the way, or only its answer is, or it is refused. */
export type WriteFault = "request lost" | "answer lost" | "unreachable";

/** Not an error of this package: what a store of somebody else's throws. */
export class StoreFailure extends Error {
  override readonly name = "StoreFailure";
}

interface Kept extends FleetObject {
  readonly modifiedMs: number;
}

/** The store. ETags are of the content, as in S3. */
export class MemoryStore implements NodeStore {
  readonly objects = new Map<string, Kept>();
  /** Calls so far: `get nodes/a.json`. */
  readonly calls: string[] = [];
  /** `settle()` throws, as when the store does not come back. */
  settles = true;
  /** All calls throw. */
  away = false;
  readonly #faults: Array<{ key: string; fault: WriteFault }> = [];
  #modified = 0;
  /** Run before each call; to let others write in between. */
  before: ((call: string) => void) | undefined;

  /** The next write of `key` meets this fault. */
  fail(key: string, fault: WriteFault): void {
    this.#faults.push({ key, fault });
  }

  /** Writes without a condition and without a trace, as somebody else does. */
  put(key: string, text: string): void {
    const body = new TextEncoder().encode(text);
    this.#modified += 1;
    this.objects.set(key, {
      body,
      etag: createHash("md5").update(body).digest("hex"),
      modifiedMs: this.#modified,
    });
  }

  text(key: string): string | undefined {
    const body = this.objects.get(key)?.body;
    return body === undefined ? undefined : new TextDecoder().decode(body);
  }

  async get(key: string): Promise<FleetObject | undefined> {
    this.#call("get", key);
    return this.objects.get(key);
  }

  async createIfAbsent(key: string, body: Uint8Array): Promise<FleetWrite> {
    this.#call("create", key);
    return this.#write(key, body, () => !this.objects.has(key));
  }

  async replaceIf(key: string, body: Uint8Array, etag: string): Promise<FleetWrite> {
    this.#call("replace", key);
    return this.#write(key, body, () => this.objects.get(key)?.etag === etag);
  }

  async *list(prefix: string): AsyncIterable<{ key: string; etag: string; modifiedMs: number }> {
    this.#call("list", prefix);
    for (const [key, { etag, modifiedMs }] of [...this.objects].sort())
      if (key.startsWith(prefix)) yield { key, etag, modifiedMs };
  }

  async delete(key: string): Promise<void> {
    this.#call("delete", key);
    this.objects.delete(key);
  }

  #call(what: string, key: string): void {
    this.before?.(`${what} ${key}`);
    this.calls.push(`${what} ${key}`);
    if (this.away) throw new StoreFailure("the store is away");
  }

  #write(key: string, body: Uint8Array, holds: () => boolean): FleetWrite {
    const attempt = (): FleetWrite => {
      if (!holds()) return { kind: "rejected" };
      this.put(key, new TextDecoder().decode(body));
      return { kind: "applied", etag: this.objects.get(key)?.etag ?? "" };
    };
    const at = this.#faults.findIndex((each) => each.key === key);
    const fault = at < 0 ? undefined : this.#faults.splice(at, 1)[0]?.fault;
    if (fault === "unreachable") throw new StoreFailure("the store refused the connection");
    if (fault === undefined) return attempt();
    if (fault === "answer lost") attempt();
    return {
      kind: "ambiguous",
      cause: new StoreFailure("no answer"),
      settle: async () => {
        if (!this.settles) throw new StoreFailure("the store did not come back");
        const there = this.objects.get(key);
        if (there !== undefined && Buffer.from(there.body).equals(body))
          return { kind: "applied", etag: there.etag };
        const again = attempt();
        return again.kind === "ambiguous" ? { kind: "rejected" } : again;
      },
    };
  }
}
