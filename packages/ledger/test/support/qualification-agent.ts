// An agent of a qualification as a process: sound, or with a fault that the qualification must find.
import { randomUUID } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { formatRecord } from "../../src/core/record.ts";
import { loadDigest } from "../../src/digest.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { openMemoryLedger } from "../../src/memory-ledger.ts";
import { type AgentOptions, serveAgent } from "../../src/qualification/agent.ts";
import type { Flock } from "../../src/qualification/agent-lock.ts";
import { openProbeLedger } from "../../src/qualification/probe-place.ts";

const [url = "", fault = "none"] = process.argv.slice(2);
const bucket = { endpoint: process.env["S3_ENDPOINT"] };

/** Everybody gets it. */
const openToAll: Flock = { tryLock: () => true, unlock: () => undefined };

/** A sound ledger but for its claims. */
function withClaim(
  broken: (ledger: StoredLedger, directory: string) => StoredLedger["claim"],
): NonNullable<AgentOptions["open"]> {
  return async (_, probe, options) => {
    const ledger = await openProbeLedger(url, probe, options);
    const claim = broken(ledger, `${url}/${probe}/ledger`);
    return new Proxy(ledger, {
      get: (target, name) => {
        if (name === "claim") return claim;
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

/** Looks and writes without a lock, over what somebody else has written meanwhile. */
const unlocked = withClaim((ledger, directory) => async (id, body, chooseOwner) => {
  if ((await ledger.lookup(id)) !== undefined) return ledger.claim(id, body, chooseOwner);
  const digest = await loadDigest();
  const owner = { backend: await chooseOwner(), bodyHash: digest.bodyHash(body) };
  await delay(30);
  const staging = `${directory}/.claim-${randomUUID()}`;
  writeFileSync(staging, formatRecord(owner));
  renameSync(staging, `${directory}/${digest.key(id)}.json`);
  return { kind: "new", owner };
});

/** Answers before it writes, now and then: what a death then loses was acknowledged. */
const forgetful = withClaim((ledger) => {
  let count = 0;
  return async (id, body, chooseOwner) => {
    count += 1;
    if (count % 4 !== 0 || (await ledger.lookup(id)) !== undefined)
      return ledger.claim(id, body, chooseOwner);
    return { kind: "new", owner: { backend: await chooseOwner(), bodyHash: "blake3:" } };
  };
});

const faults: Readonly<Record<string, Pick<AgentOptions, "open" | "flock">>> = {
  none: {},
  lock: { flock: openToAll },
  unlocked: { open: unlocked },
  forget: { open: forgetful },
  // Each process has a memory of its own: it knows nothing of the others.
  memory: { open: () => openMemoryLedger() },
};

await serveAgent(url, { input: process.stdin, output: process.stdout, bucket, ...faults[fault] });
process.exit(0);
