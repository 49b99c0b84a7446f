// A journal in files: what it keeps, and that it is written to no directory of others.
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { dispatcher, JournalError, ranAtMostOnce, readRuns, until } from "../../src/index.ts";
import { call, failureOf, read, submit } from "../support/call.ts";
import { directory } from "../support/directory.ts";

const refused = { code: "CELLKIT_TESTING_JOURNAL" };

/** Every path below a directory. */
const all = async (path: string) => (await readdir(path, { recursive: true })).toSorted();

describe("a directory that is another's is refused, and nothing is written to it", () => {
  it.each([
    ["a file beside a journal", "hosts", "127.0.0.1 localhost"],
    ["a dispatcher's own root", "dispatcher.lock", ""],
    ["other starts", "runs.jsonl", '{"run":1}\n'],
    ["other entries", "execution-journal/today.json", "{}"],
  ])("%s", async (_what, name, text) => {
    const journal = await directory();
    const path = join(journal, name);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, text);
    const before = await all(journal);
    const error = await failureOf(dispatcher({ journal }));
    expect(error).toMatchObject(refused);
    expect(String(error)).toContain("give an empty directory, or that of an earlier start");
    expect([await all(journal), await readFile(path, "utf8")]).toEqual([before, text]);
  });

  it("a file, and a directory where the starts should be", async () => {
    const journal = await directory();
    await mkdir(join(journal, "runs.jsonl"));
    expect(await failureOf(dispatcher({ journal }))).toMatchObject(refused);
    await writeFile(join(journal, "file"), "");
    expect(await failureOf(dispatcher({ journal: join(journal, "file") }))).toMatchObject(refused);
  });

  it.each(["", " ", 7])("%j is no directory", async (journal) => {
    expect(await failureOf(dispatcher({ journal: journal as string }))).toMatchObject({
      code: "CELLKIT_TESTING_OPTION",
      option: "options.journal",
    });
  });
});

it.each(["whole", "without its entries", "without its starts"])(
  "the directory of an earlier start is taken again: %s",
  async (what) => {
    const journal = join(await directory(), "made", "by it");
    {
      await using it = await dispatcher({ journal });
      await submit(it.origin, "a");
    }
    if (what === "without its entries") await rm(join(journal, "execution-journal"), { recursive: true });
    if (what === "without its starts") await rm(join(journal, "runs.jsonl"));
    await using it = await dispatcher({ journal });
    // Whatever the death of the first one made of it, it is known.
    const isKnown = (await read(it.origin, "a")).status !== 404;
    expect(isKnown).toBe(what !== "without its entries");
    expect(it.runs.size).toBe(what === "without its starts" ? 0 : 1);
  },
);

describe("a journal in files", () => {
  it("has an entry for each id, and a new dispatcher goes on with them", async () => {
    const journal = await directory();
    {
      await using first = await dispatcher({ journal });
      await submit(first.origin, "a");
      await until("its end", async () =>
        JSON.stringify((await read(first.origin, "a")).body).includes("Succeeded"),
      );
    }
    const names = await readdir(join(journal, "execution-journal"));
    expect(names.filter((name) => /^[0-9a-f]{64}\.json$/.test(name))).toHaveLength(1);
    await using second = await dispatcher({ journal });
    expect(await submit(second.origin, "a")).toMatchObject({
      status: 200,
      body: { phase: "Succeeded", output: "ok" },
    });
    expect(ranAtMostOnce(second)).toEqual(new Map([["a", 1]]));
  });

  it("that can no longer be written: a cancel shows that it goes on, and no end is told", async () => {
    const journal = await directory();
    await using it = await dispatcher({ journal, run: "hold" });
    await submit(it.origin, "a");
    await until("its run", async () => JSON.stringify((await read(it.origin, "a")).body).includes("Running"));
    await rm(join(journal, "execution-journal"), { recursive: true });
    expect(await call(it.origin, "POST", "/v1/executions/a/cancel")).toMatchObject({
      status: 202,
      body: { phase: "Cancelling", reason: "cancellation requested; cleanup pending" },
    });
    const undurable = { status: 503, body: { error: "terminal record not durable; do not replay" } };
    await until("its end", async () => (await read(it.origin, "a")).status !== 200);
    expect(await read(it.origin, "a")).toMatchObject(undurable);
    expect(await submit(it.origin, "a")).toMatchObject(undurable);
    expect(await call(it.origin, "POST", "/v1/executions/a/cancel")).toMatchObject(undurable);
  });

  it("that cannot be written refuses admission, and the id stays free", async () => {
    const journal = await directory();
    await using it = await dispatcher({ journal });
    await rm(join(journal, "execution-journal"), { recursive: true });
    expect(await submit(it.origin, "a")).toMatchObject({
      status: 503,
      body: { error: "durable admission unavailable; retry same id" },
    });
    expect(it.runs.size).toBe(0);
    await mkdir(join(journal, "execution-journal", "staging"), { recursive: true });
    expect(await submit(it.origin, "a", { workload: { id: "b", caller: "c" } })).toMatchObject({
      status: 202,
    });
  });

  it("with something else in it is refused", async () => {
    const journal = await directory();
    await using it = await dispatcher({ journal });
    await writeFile(join(journal, "execution-journal", "x.json"), "{}");
    expect(await failureOf(it.restart())).toBeInstanceOf(JournalError);
    await writeFile(join(journal, "runs.jsonl"), "nonsense\n");
    expect(await failureOf(readRuns(journal))).toBeInstanceOf(JournalError);
  });
});
