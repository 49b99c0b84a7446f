import { pathToFileURL } from "node:url";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import {
  type Bucket,
  type BucketOptions,
  type ConditionalWrite,
  openBucket,
  type QualificationOptions,
  type QualificationProgress,
  qualifyBucket,
} from "../../src/index.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { clientOptions, startServer } from "../support/server.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const RACER_COUNT = 3;
const few: QualificationOptions = { writerCount: RACER_COUNT, roundCount: 3 };

/** A bucket that is right but for what a test changes; one for all writers. */
async function openChanged(change: (inner: Bucket) => Partial<Bucket>): Promise<Bucket> {
  const inner = openBucket(pathToFileURL(await temporaryDirectory()).href);
  onTestFinished(() => inner.close());
  return {
    url: inner.url,
    get: (key, options) => inner.get(key, options),
    put: (...call) => inner.put(...call),
    createIfAbsent: (...call) => inner.createIfAbsent(...call),
    replaceIf: (...call) => inner.replaceIf(...call),
    delete: (...call) => inner.delete(...call),
    list: inner.list.bind(inner),
    close: () => inner.close(),
    [Symbol.asyncDispose]: () => inner.close(),
    ...change(inner),
  };
}

async function serve(options: BucketOptions = {}) {
  const server = await startServer();
  const opened: Bucket[] = [];
  const open = () => {
    const bucket = openBucket("s3://cells/fleet", clientOptions(server, options));
    opened.push(bucket);
    return bucket;
  };
  return { server, opened, open };
}

describe("qualified is", () => {
  it(`the embedded server, by writers with clients of their own, and it is left as it was`, async () => {
    const { server, opened, open } = await serve();
    const heard: QualificationProgress[] = [];
    const roundCount = inject("size") === "long" ? 500 : 12;
    const found = await qualifyBucket(open, { roundCount, onProgress: (progress) => heard.push(progress) });
    expect(found).toMatchObject({
      url: "s3://cells/fleet",
      verdict: "qualified",
      problems: [],
      writerCount: 8,
    });
    expect(found.probe.every(({ result }) => result === "held")).toBe(true);
    for (const kind of ["create", "replace"] as const) {
      expect(found.races[kind]).toMatchObject({
        roundCount,
        counts: { "one-winner": roundCount },
        rounds: [],
      });
      expect(heard.filter(({ phase }) => phase === kind).map(({ doneCount }) => doneCount)).toHaveLength(
        roundCount,
      );
    }
    expect(heard.at(-1)).toEqual({ phase: "replace", doneCount: roundCount, totalCount: roundCount });
    expect(opened).toHaveLength(8);
    for (const bucket of opened)
      await expect(bucket.get("k")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_CLOSED" });
    const all = openBucket("s3://cells", clientOptions(server));
    onTestFinished(() => all.close());
    for await (const { key } of all.list("")) expect.fail(`${key} was left behind`);
  });

  it("a directory, through one bucket that stays open", async () => {
    const bucket = await openChanged(() => ({}));
    expect((await qualifyBucket(bucket, few)).verdict).toBe("qualified");
    expect(await bucket.get("k")).toBeUndefined();
  });

  it("a store whose answers are lost now and then, since reading back shows who won", async () => {
    const { server } = await serve();
    const proxy = await startFaultProxy(server, (method, count) =>
      method === "PUT" && count % 5 === 0 ? { kind: "lose-answer" } : { kind: "pass" },
    );
    const found = await qualifyBucket(() => openBucket("s3://cells", clientOptions(proxy)), {
      ...few,
      roundCount: 8,
    });
    expect(found).toMatchObject({ verdict: "qualified", problems: [] });
  });
});

describe("not qualified is", () => {
  it.each<[rule: string, problem: RegExp, (inner: Bucket) => Partial<Bucket>]>([
    [
      "a store that takes the condition of a creation and does not keep it",
      /refuses to create a key that has an object/,
      (inner) => ({
        createIfAbsent: async (key, body) => ({ kind: "applied", ...(await inner.put(key, body)) }),
      }),
    ],
    [
      "a store that takes the condition of a replacement and does not keep it",
      /refuses to replace an object under an ETag of before/,
      (inner) => ({ replaceIf: async (key, body) => ({ kind: "applied", ...(await inner.put(key, body)) }) }),
    ],
    [
      "a store that looks and then writes, so that two who are at once both win",
      /several winners in \d+ of 3 rounds of create/,
      (inner) => ({ createIfAbsent: lookThenWrite(inner) }),
    ],
    [
      "a store that refuses what it wrote",
      /lost write in 3 of 3 rounds of create/,
      (inner) => ({
        async createIfAbsent(key, body) {
          const write = await inner.createIfAbsent(key, body);
          return key.endsWith("probe") ? write : { kind: "rejected" };
        },
      }),
    ],
    [
      "a store where nobody wins",
      /no winner in 3 of 3 rounds of replace/,
      (inner) => ({
        replaceIf: async (key, ...rest) =>
          key.endsWith("probe") ? inner.replaceIf(key, ...rest) : { kind: "rejected" },
      }),
    ],
    [
      "a store whose reads lag behind",
      /stale read in 3 of 3 rounds of create/,
      (inner) => {
        const seen = new Set<string>();
        return {
          async get(key, options) {
            if (!key.includes("/create/") || seen.has(key)) return inner.get(key, options);
            seen.add(key);
            return undefined;
          },
        };
      },
    ],
    [
      "a store whose deletions come back",
      /has nothing at a key that was deleted/,
      () => ({ delete: async () => undefined }),
    ],
    [
      "a store whose listing does not show what is there",
      /lists what is there, with its ETag and size: it was not listed/,
      (inner) => ({ list: (prefix: string) => inner.list(`${prefix}-elsewhere`) }),
    ],
  ])("%s", async (_, problem, change) => {
    const found = await qualifyBucket(await openChanged(change), few);
    expect(found.verdict).toBe("violated");
    expect(found.problems.join("\n")).toMatch(problem);
  });
});

it("a store that answers that it does not know conditions is not qualified, and is not asked for a minute", async () => {
  const { server } = await serve();
  const proxy = await startFaultProxy(server, (method) =>
    method === "PUT" ? { kind: "answer", status: 501, code: "NotImplemented" } : { kind: "pass" },
  );
  const found = await qualifyBucket(() => openBucket("s3://cells", clientOptions(proxy)), few);
  expect(found.verdict).toBe("violated");
  expect(found.problems[0]).toMatch(/^violated: it creates a key that has no object: .*501 NotImplemented/);
});

/** All who come while the key is looked at find it free: the racers of a round wait for each other there. */
function lookThenWrite(inner: Bucket): Bucket["createIfAbsent"] {
  const races = new Map<string, { left: number; all: PromiseWithResolvers<void> }>();
  return async (key, body): Promise<ConditionalWrite> => {
    if ((await inner.get(key)) !== undefined) return { kind: "rejected" };
    if (key.includes("/create/")) {
      const race = races.get(key) ?? { left: RACER_COUNT, all: Promise.withResolvers<void>() };
      races.set(key, race);
      race.left -= 1;
      if (race.left === 0) race.all.resolve();
      await race.all.promise;
    }
    return { kind: "applied", ...(await inner.put(key, body)) };
  };
}

describe("it could not be told of", () => {
  it("a store that is away", async () => {
    const options = {
      endpoint: "http://127.0.0.1:1",
      credentials: { accessKeyId: "a", secretAccessKey: "b" },
    };
    const found = await qualifyBucket(() => openBucket("s3://cells", options), few);
    expect(found).toMatchObject({ verdict: "unknown", races: { create: { roundCount: 0 } } });
    expect(found.problems[0]).toMatch(/ECONNREFUSED/);
  });

  it("a store that refuses the credentials, without showing them", async () => {
    const { open } = await serve({ credentials: { accessKeyId: "a", secretAccessKey: "a wrong secret" } });
    const found = await qualifyBucket(open, few);
    expect(found.verdict).toBe("unknown");
    expect(found.problems[0]).toMatch(/denied access/);
    expect(JSON.stringify(found)).not.toContain("a wrong secret");
  });

  it("a store that answers 409 to every write, after the tries that are due", async () => {
    const { server } = await serve();
    const proxy = await startFaultProxy(server, (method) =>
      method === "PUT"
        ? { kind: "answer", status: 409, code: "ConditionalRequestConflict" }
        : { kind: "pass" },
    );
    const options = clientOptions(proxy, { settleTimeoutMs: 300 });
    const found = await qualifyBucket(() => openBucket("s3://cells", options), few);
    expect(found.verdict).toBe("unknown");
    expect(found.problems[0]).toMatch(/still undecided/);
  });

  it("a store that goes away between two rounds; what was seen until then counts", async () => {
    let isAway = false;
    const bucket = await openChanged((inner) => ({
      createIfAbsent: async (...call) => {
        if (isAway) throw new TypeError("away");
        return inner.createIfAbsent(...call);
      },
    }));
    const onProgress = ({ phase, doneCount }: QualificationProgress) => {
      if (phase === "create" && doneCount === 2) isAway = true;
    };
    const found = await qualifyBucket(bucket, { ...few, onProgress });
    expect(found.verdict).toBe("unknown");
    expect(found.races.create).toMatchObject({ roundCount: 3, counts: { "one-winner": 2, unknown: 1 } });
    expect(found.problems).toContain("unknown: 3 of 3 rounds of replace were not run");
  });

  it("a store that takes longer than there is time", async () => {
    const { server } = await serve();
    const proxy = await startFaultProxy(server, () => ({ kind: "hang" }));
    const found = await qualifyBucket(
      () => openBucket("s3://cells", clientOptions(proxy, { timeoutMs: 500 })),
      {
        ...few,
        timeLimitMs: 200,
      },
    );
    expect(found.verdict).toBe("unknown");
  });
});

describe("a qualification", () => {
  it("ends with its signal's reason", async () => {
    const bucket = await openChanged(() => ({}));
    const abort = new AbortController();
    const onProgress = ({ phase }: QualificationProgress) => {
      if (phase === "create") abort.abort(new TypeError("enough"));
    };
    await expect(qualifyBucket(bucket, { ...few, signal: abort.signal, onProgress })).rejects.toThrow(
      "enough",
    );
    const aborted = qualifyBucket(bucket, { signal: AbortSignal.abort(new TypeError("before")) });
    await expect(aborted).rejects.toThrow("before");
  });

  it.each<QualificationOptions>([
    { writerCount: 1 },
    { writerCount: 65 },
    { roundCount: 0 },
    { roundCount: 1.5 },
    { timeLimitMs: 0 },
    { prefix: "" },
    { prefix: "a/../b" },
    { prefix: "/a" },
    { prefix: "a b" },
  ])("takes no option out of range: %j", async (options) => {
    const bucket = await openChanged(() => ({}));
    await expect(qualifyBucket(bucket, options)).rejects.toMatchObject({ code: "CELLKIT_BUCKET_OPTION" });
  });
});
