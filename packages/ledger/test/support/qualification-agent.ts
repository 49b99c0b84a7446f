// An agent of a qualification as a process: sound, or with a fault that the qualification must find.
import { openMemoryLedger } from "../../src/memory-ledger.ts";
import { serveAgent } from "../../src/qualification/agent.ts";
import type { Flock } from "../../src/qualification/agent-lock.ts";
import { openProbeLedger } from "../../src/qualification/probe-place.ts";

const [url = "", fault = "none"] = process.argv.slice(2);

/** Everybody gets it. */
const openToAll: Flock = { tryLock: () => true, unlock: () => undefined };

await serveAgent(url, {
  input: process.stdin,
  output: process.stdout,
  bucket: { endpoint: process.env["S3_ENDPOINT"] },
  ...(fault === "lock" ? { flock: openToAll } : {}),
  // Each process has a memory of its own: it forgets, and knows nothing of the others.
  ...(fault === "memory" ? { open: () => openMemoryLedger() } : {}),
  ...(fault === "forget"
    ? {
        open: async (_: string, probe: string, options: { requireExisting: boolean }) => {
          const ledger = await openProbeLedger(url, probe, options);
          let count = 0;
          // Answers before it writes, now and then: what a death then loses was acknowledged.
          const claim: typeof ledger.claim = async (id, body, chooseOwner) => {
            count += 1;
            if (count % 4 !== 0 || (await ledger.lookup(id)) !== undefined)
              return ledger.claim(id, body, chooseOwner);
            return { kind: "new", owner: { backend: await chooseOwner(), bodyHash: "blake3:" } };
          };
          return new Proxy(ledger, {
            get: (target, name) => {
              if (name === "claim") return claim;
              const value: unknown = Reflect.get(target, name);
              return typeof value === "function" ? value.bind(target) : value;
            },
          });
        },
      }
    : {}),
});
process.exit(0);
