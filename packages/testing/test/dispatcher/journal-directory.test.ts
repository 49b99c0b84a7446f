// Whose directory it is: what is not a journal's is not written to.
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { dispatcher } from "../../src/index.ts";
import { failureOf, read, submit } from "../support/call.ts";
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
