import type { Bucket } from "@cellkit/bucket";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { type ServedBucket, serveTestBucket } from "../support/bucket-places.ts";
import { type Calls, seam } from "../support/bucket-seam.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";
const owner = (backend: string) => async () => backend;
const QUARANTINE = { quarantineMs: 600_000 };
const HOUR_MS = 3_600_000;
const isRecord = (key: string) => /\/[0-9a-f]{64}\.json$/.test(key);

let served: ServedBucket;
let count = 0;
let name = "";
beforeAll(async () => {
  served = await serveTestBucket();
});
beforeEach(() => {
  served.fault = () => "pass";
  count += 1;
  name = `retirement-${count}`;
});
afterAll(() => served[Symbol.asyncDispose]());

function open(bucket: Bucket, aheadMs = HOUR_MS): Promise<StoredLedger> {
  return openBucketLedger({ bucket, name, retirable: true, now: () => Date.now() + aheadMs });
}

/** A ledger whose retiring writes wait until they are let go, as a request does that is late. */
async function openLate(): Promise<{ ledger: StoredLedger; sent: Promise<void>; letGo: () => void }> {
  const inner = served.open();
  const sent = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const replaceIf: Calls["replaceIf"] = async (...call) => {
    sent.resolve();
    await gate.promise;
    return inner.replaceIf(...call);
  };
  return { ledger: await open(seam(inner, { replaceIf })), sent: sent.promise, letGo: gate.resolve };
}

it.each([
  ["the same owner and bytes", A, "body"],
  ["other bytes", B, "other bytes"],
])(
  "a late retirement cannot take away the record of who claimed the id since, with %s",
  async (_, backend, body) => {
    const ledger = await open(served.open());
    const late = await openLate();
    await ledger.claim("id", "body", owner(A));
    const retiring = late.ledger.retire("id", QUARANTINE);
    await late.sent;
    expect(await ledger.retire("id", QUARANTINE)).toBe(true);
    expect((await ledger.claim("id", body, owner(backend))).kind).toBe("new");
    late.letGo();
    expect(await retiring).toBe(false);
    expect(await ledger.lookup("id")).toMatchObject({ backend });
    expect((await ledger.claim("id", body, owner("http://another"))).kind).toBe("existing");
  },
);

it("nothing that can be claimed is ever deleted: only marks are", async () => {
  const inner = served.open();
  const deleted: string[] = [];
  const remove: Calls["delete"] = (key, options) => {
    deleted.push(key);
    return inner.delete(key, options);
  };
  const ledger = await open(seam(inner, { delete: remove }));
  const young = await open(served.open(), 0);
  for (const id of ["a", "b", "c"]) await ledger.claim(id, "body", owner(A));
  await young.retire("a", QUARANTINE);
  await ledger.retire("b", QUARANTINE);
  expect(await ledger.sweep(QUARANTINE)).toBe(1);
  expect(deleted).toHaveLength(2);
  expect(deleted.filter(isRecord)).toEqual([]);
  expect(await ledger.count()).toBe(1);
});

it("a mark that a crash left behind does not have the next record of its id swept", async () => {
  const inner = served.open();
  const broken = await open(seam(inner, { delete: () => Promise.reject(new TypeError("crashed")) }));
  const young = await open(inner, 0);
  await young.claim("id", "body", owner(A));
  await young.retire("id", QUARANTINE);
  expect(await broken.retire("id", QUARANTINE)).toBe(true);
  await young.claim("id", "body", owner(A));
  const later = await open(inner, 3 * HOUR_MS);
  expect(await later.sweep(QUARANTINE)).toBe(0);
  expect(await later.lookup("id")).toMatchObject({ backend: A });
  for await (const { key } of inner.list(`ledger/${name}/`)) expect(key).not.toMatch(/retired$/);
});

it("a retirement whose answer is lost is found out", async () => {
  const ledger = await open(served.open(served.relayed));
  await ledger.claim("id", "body", owner(A));
  served.fault = (line) => (/^PUT \S+\/[0-9a-f]{64}\.json/.test(line) ? "lose-answer" : "pass");
  expect(await ledger.retire("id", QUARANTINE)).toBe(true);
  served.fault = () => "pass";
  expect(await ledger.lookup("id")).toBeUndefined();
});

it("a retirement that something sent twice was this call's", async () => {
  const ledger = await open(served.open(served.relayed));
  await ledger.claim("id", "body", owner(A));
  served.fault = (line) => (/^PUT \S+\/[0-9a-f]{64}\.json/.test(line) ? "send-twice" : "pass");
  expect(await ledger.retire("id", QUARANTINE)).toBe(true);
});

it("a retirement whose answer is lost, and whose id is claimed again meanwhile, is not known", async () => {
  const inner = served.open();
  const other = await open(inner);
  const replaceIf: Calls["replaceIf"] = async (key, body, etag, options) => {
    await inner.replaceIf(key, body, etag, options);
    const settle = async () => {
      await other.claim("id", "body", owner(B));
      return { kind: "rejected" as const };
    };
    return { kind: "ambiguous", cause: new TypeError("reset"), settle };
  };
  const ledger = await open(seam(inner, { replaceIf }));
  await ledger.claim("id", "body", owner(A));
  await expect(ledger.retire("id", QUARANTINE)).rejects.toMatchObject({ recorded: "maybe" });
});

it("a claim whose answer is lost, and whose record is retired before that is found out, is not new a second time", async () => {
  const inner = served.open();
  const other = await open(inner);
  const createIfAbsent: Calls["createIfAbsent"] = async (key, body, options) => {
    const write = await inner.createIfAbsent(key, body, options);
    if (!isRecord(key)) return write;
    const settle = async () => {
      await other.retire("id", QUARANTINE);
      return { kind: "rejected" as const };
    };
    return { kind: "ambiguous", cause: new TypeError("reset"), settle };
  };
  const ledger = await open(seam(inner, { createIfAbsent }));
  await expect(ledger.claim("id", "body", owner(A))).rejects.toMatchObject({ recorded: "maybe" });
  expect(await other.lookup("id")).toBeUndefined();
});

it("the time of a store that keeps whole seconds is taken as the latest that it may be", async () => {
  const inner = served.open();
  async function* list(prefix: string) {
    for await (const object of inner.list(prefix))
      yield { ...object, modifiedMs: Math.floor(object.modifiedMs / 1000) * 1000 };
  }
  const bucket = seam(inner, { list: list as Calls["list"] });
  let nowMs = Date.now();
  const ledger = await openBucketLedger({ bucket, name, retirable: true, now: () => nowMs });
  await ledger.claim("id", "body", owner(A));
  let modifiedMs = 0;
  for await (const object of list(`ledger/${name}/`))
    if (isRecord(object.key)) modifiedMs = object.modifiedMs;
  nowMs = modifiedMs + 600_998;
  expect(await ledger.retire("id", QUARANTINE)).toBe(false);
  nowMs = modifiedMs + 600_999;
  expect(await ledger.retire("id", QUARANTINE)).toBe(true);
});

it("a bucket whose listing lags behind retires nothing", async () => {
  const inner = served.open();
  async function* list(prefix: string) {
    for await (const object of inner.list(prefix)) yield { ...object, etag: '"of before"' };
  }
  const ledger = await open(seam(inner, { list: list as Calls["list"] }));
  await ledger.claim("id", "body", owner(A));
  await expect(ledger.retire("id", QUARANTINE)).rejects.toMatchObject({ recorded: "no" });
  expect(await ledger.lookup("id")).toMatchObject({ backend: A });
});
