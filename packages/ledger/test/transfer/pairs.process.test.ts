// Moving ledgers between the stores, in every direction, through the addresses that the commands take; and qualifying them.
import { createReadStream } from "node:fs";
import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { StoredLedger } from "../../src/ledger.ts";
import { openLedger } from "../../src/open-ledger.ts";
import { localPlace } from "../../src/qualification/agent-connection.ts";
import { qualifyLedger } from "../../src/qualification/qualify-ledger.ts";
import { isClean, verifyLedger } from "../../src/qualification/verify-ledger.ts";
import { exportToFile } from "../../src/transfer/export-to-file.ts";
import { importLedger } from "../../src/transfer/transfer.ts";
import { type ServedBucket, serveTestBucket } from "../support/bucket-places.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { agentCommand, scratch } from "../support/qualification.ts";

/** More than an import has on its way at a time. */
const COUNT = 70;
const stores = ["directory", "bucket", "database"] as const;
type Store = (typeof stores)[number];

let directory: Awaited<ReturnType<typeof scratch>>;
let bucket: ServedBucket;
let postgres: PostgresServer | undefined;
beforeAll(async () => {
  [directory, bucket, postgres] = await Promise.all([scratch(), serveTestBucket(), PostgresServer.start()]);
});
afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]();
  await bucket[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

const urls: Record<Store, () => string | undefined> = {
  directory: () => join(directory.path, "ledger"),
  bucket: () => "s3://cells/router",
  database: () => postgres?.url(),
};

function open(store: Store, name: string): Promise<StoredLedger> | undefined {
  const url = urls[store]();
  return url === undefined ? undefined : openLedger(url, { name, bucket: bucket.options });
}

const owner = (at: number): string => `http://10.0.0.${at % 7}:8787`;

describe("every binding is there after a move", () => {
  const pairs = stores.flatMap((from) => stores.map((to) => [from, to] as const));
  it.for(pairs)("from a %s to a %s", async ([from, to], { skip }) => {
    const source = await open(from, `from-${from}-${to}`);
    const target = await open(to, `to-${from}-${to}`);
    if (source === undefined || target === undefined) return skip("no PostgreSQL could be had here");
    await using _source = source;
    await using _target = target;
    const ids = Array.from({ length: COUNT }, (_, at) => `id-${at}`);
    await Promise.all(ids.map((id, at) => source.claim(id, `body of ${id}`, async () => owner(at))));
    const file = join(directory.path, `${from}-${to}.ndjson`);
    const exported = await exportToFile(source, file);
    expect(exported).toMatchObject({ recordCount: COUNT, leftOutCount: 0 });
    const read = () => createReadStream(file);
    expect(await importLedger(target, read, { anyName: true })).toMatchObject({
      recordCount: COUNT,
      addedCount: COUNT,
    });
    expect(await importLedger(target, read, { anyName: true })).toMatchObject({
      addedCount: 0,
      presentCount: COUNT,
    });
    const claims = await Promise.all(
      ids.map((id) => target.claim(id, `body of ${id}`, async () => "http://nobody")),
    );
    expect(claims.map((claim) => ("owner" in claim ? [claim.kind, claim.owner.backend] : claim))).toEqual(
      ids.map((_, at) => ["existing", owner(at)]),
    );
    const findings = await verifyLedger(target);
    expect(findings.recordCount).toBe(COUNT);
    expect(findings.bindingsDigest).toBe(exported.bindingsDigest);
    expect(isClean(findings)).toBe(true);
  });
});

it.for(["directory", "bucket"] as const)(
  "in a %s, a mark without a record is told apart from a marked record that cannot be read",
  async (store) => {
    await using ledger = (await open(store, "marks")) as StoredLedger;
    const [lone, corrupt] = ["ab".repeat(32), "cd".repeat(32)];
    const things = { [`${lone}.retired`]: "", [`${corrupt}.retired`]: "", [`${corrupt}.json`]: "{" };
    for (const [name, text] of Object.entries(things))
      if (store === "directory") await writeFile(join(directory.path, "ledger", "marks", name), text);
      else await bucket.open().put(`router/ledger/marks/${name}`, text);
    const findings = await verifyLedger(ledger);
    expect(findings).toMatchObject({ recordCount: 0, foreignCount: 0 });
    expect(findings.marks.map(({ name }) => name)).toEqual([lone]);
    expect(findings.corrupt.map(({ name }) => name)).toEqual([corrupt]);
    await expect(exportToFile(ledger, join(directory.path, `${store}-marks`))).rejects.toMatchObject({
      key: corrupt,
    });
  },
);

it("a staging file that a crash left behind is told, and is no trouble", async () => {
  await using ledger = (await open("directory", "staging")) as StoredLedger;
  await ledger.claim("id", "body", async () => owner(1));
  const own = join(directory.path, "ledger", "staging");
  for (const [name, ageMs] of [
    [".claim-staging/1-2", 700_000],
    [".claim-staging/1-3", 1_000],
    [".tmpAbC", 700_000],
  ] as const) {
    await writeFile(join(own, name), "");
    await utimes(join(own, name), new Date(Date.now() - ageMs), new Date(Date.now() - ageMs));
  }
  const findings = await verifyLedger(ledger, { directory: own });
  expect(findings.staleStaging.map(({ name }) => name).sort()).toEqual([".claim-staging/1-2", ".tmpAbC"]);
  expect(isClean(findings)).toBe(true);
});

describe("a store of this machine is qualified, and nothing is left in it", () => {
  it.skipIf(inject("size") !== "long").for(["bucket", "database"] as const)(
    "%s (long only)",
    async (store, { skip }) => {
      const url = urls[store]();
      if (url === undefined) return skip("no PostgreSQL could be had here");
      const { command, args, env } = agentCommand(url);
      const keys = {
        S3_ENDPOINT: bucket.options.endpoint,
        AWS_ACCESS_KEY_ID: bucket.options.credentials?.accessKeyId,
        AWS_SECRET_ACCESS_KEY: bucket.options.credentials?.secretAccessKey,
      };
      const place = localPlace({ command, args, env: { ...env, ...keys } });
      const found = await qualifyLedger(url, { places: [place], bucket: bucket.options });
      expect(found.checks.filter(({ required, result }) => required && result !== "passed")).toEqual([]);
      expect(found.verdict).toBe("qualified");
      const left: string[] = [];
      for await (const { key } of bucket.open().list("router/ledger/cellkit-qualify-")) left.push(key);
      expect(left).toEqual([]);
      if (store === "bucket") return;
      const probes = "SELECT 1 FROM cellkit_ledger WHERE ledger LIKE 'cellkit-qualify-%'";
      expect(await postgres?.query(probes)).toEqual([]);
    },
  );
});
