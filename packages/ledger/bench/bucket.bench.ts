// What a claim costs beside the conditional PUT that it cannot do without, and how long a lookup waits meanwhile.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openBucket } from "@cellkit/bucket";
import { openBucketLedger } from "../src/bucket/open-bucket-ledger.ts";
import { loadDigest } from "../src/digest.ts";
import type { StoredLedger } from "../src/ledger.ts";
import { measureLooks, measureRate } from "./support/storm.ts";

const WAITING_COUNT = 64;
const CLAIMS_A_ROUND = 256;
const BACKEND = "http://10.20.0.11:8787";
const BODY = "x".repeat(1_024);

interface Sides {
  ledger: StoredLedger;
  claim(): Promise<unknown>;
  /** The creation of an object as large, at a key as long. */
  create(): Promise<void>;
  get(): Promise<unknown>;
  close(): Promise<void>;
}

async function openSides(): Promise<Sides> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-bench-"));
  const credentials = { accessKeyId: "bench", secretAccessKey: randomUUID() };
  const program = fileURLToPath(new URL("./support/bucket-server-process.ts", import.meta.url));
  const server = spawn(
    process.execPath,
    ["--conditions=@cellkit/source", program, join(directory, "bucket"), ...Object.values(credentials)],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const [endpoint] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
  const bucket = openBucket("s3://cells", { endpoint, credentials });
  const ledger = await openBucketLedger({ bucket });
  const { key } = await loadDigest();
  const object = "x".repeat(220);
  let count = 0;
  await ledger.claim("known", BODY, async () => BACKEND);
  await bucket.put("plain/known", object);
  return {
    ledger,
    claim: async () => {
      count += 1;
      const { kind } = await ledger.claim(`run-${count}`, BODY, async () => BACKEND);
      if (kind !== "new") throw new TypeError(`claim ${count} is ${kind}`);
    },
    create: async () => {
      count += 1;
      const { kind } = await bucket.createIfAbsent(`ledger/plain/${key(`run-${count}`)}.json`, object);
      if (kind !== "applied") throw new TypeError(`creation ${count} is ${kind}`);
    },
    get: () => bucket.get("plain/known"),
    async close() {
      await ledger.close();
      await bucket.close();
      server.stdin.end();
      await once(server, "exit");
      await rm(directory, { recursive: true });
    },
  };
}

const CONDITIONS = `${WAITING_COUNT} waiting, ${CLAIMS_A_ROUND} a round; the embedded server in a process of its own on this machine, fsync on; wall-clock`;

export const benchmarks = [
  {
    name: "ledger/bucket-claims",
    subject: "claims of new ids: a GET, then a PUT under a condition",
    against: "plain createIfAbsent of an object as large: the PUT alone",
    unit: "claims/s",
    roundCount: 11,
    conditions: CONDITIONS,
    async setup() {
      const sides = await openSides();
      return {
        subject: () => measureRate(WAITING_COUNT, CLAIMS_A_ROUND, sides.claim),
        against: () => measureRate(WAITING_COUNT, CLAIMS_A_ROUND, sides.create),
        close: sides.close,
      };
    },
  },
  {
    name: "ledger/bucket-lookup-p99",
    subject: "a lookup while 64 claim new ids, 99th percentile",
    against: "a plain GET of an object as large while 64 plain createIfAbsent wait",
    unit: "ms",
    roundCount: 5,
    conditions: `a lookup each 20 ms, from when it was due to its answer; ${CONDITIONS}`,
    async setup() {
      const sides = await openSides();
      const storm = (act: () => Promise<unknown>) => () =>
        measureRate(WAITING_COUNT, 2 * CLAIMS_A_ROUND, act);
      return {
        subject: () => measureLooks(storm(sides.claim), () => sides.ledger.lookup("known"), 20),
        against: () => measureLooks(storm(sides.create), sides.get, 20),
        close: sides.close,
      };
    },
  },
];
