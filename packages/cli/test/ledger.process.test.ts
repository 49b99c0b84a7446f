// `cellkit ledger …` on ledgers in directories and in a bucket of this machine.
import { readFile, writeFile } from "node:fs/promises";
import { loadDigest, openLedger } from "@cellkit/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let url: string;
let keys: string[];
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
  url = `${directory.path}/ownership`;
  const ledger = await openLedger(url);
  for (const id of ["run-1", "run-2", "run-3"])
    await ledger.claim(id, `body of ${id}`, async () => "http://10.0.0.1:8787");
  await ledger.close();
  const digest = await loadDigest();
  keys = ["run-1", "run-2", "run-3"].map((id) => digest.key(id));
});
afterAll(() => directory.remove());
const path = (name: string): string => `${directory.path}/${name}`;

describe("ls", () => {
  it("shows hashes, ages and owners, and says when there are more", async () => {
    const [all, one] = await Promise.all([
      run(["ledger", "ls", url]),
      run(["ledger", "ls", url, "--limit", "1"]),
    ]);
    expect(all.stdout[0]).toMatch(/^KEY {63}AGE {5}OWNER$/);
    expect(
      all.stdout
        .slice(1)
        .map((line) => line.slice(0, 64))
        .sort(),
    ).toEqual([...keys].sort());
    expect(all.stdout[1]).toMatch(/^[0-9a-f]{64} {2}\d+[sm] +http:\/\/10\.0\.0\.1:8787$/);
    expect(all.code).toBe(0);
    expect(one.stdout).toHaveLength(2);
    expect(one.stderr).toEqual(["there are more than 1: --limit 0 shows all"]);
  });

  it("is JSON for programs", async () => {
    const { stdout } = await run(["ledger", "ls", url, "--json"]);
    expect(stdout.map((line) => JSON.parse(line).key).sort()).toEqual([...keys].sort());
    expect(JSON.parse(stdout[0] ?? "")).toMatchObject({
      backend: "http://10.0.0.1:8787",
      bodyHash: expect.stringMatching(/^blake3:[0-9a-f]{64}$/),
      modifiedMs: expect.any(Number),
      marked: false,
    });
  });
});

describe("show", () => {
  it("hashes the id, or takes a hash, or says that nobody claimed it", async () => {
    const [byId, byKey, absent, neither] = await Promise.all([
      run(["ledger", "show", url, "run-2"]),
      run(["ledger", "show", url, "--key", keys[1] ?? "", "--json"]),
      run(["ledger", "show", url, "run-9"]),
      run(["ledger", "show", url]),
    ]);
    expect(byId).toMatchObject({ code: 0, stderr: [] });
    expect(byId.stdout.slice(0, 2)).toEqual([`key       ${keys[1]}`, "owner     http://10.0.0.1:8787"]);
    expect(JSON.parse(byKey.stdout.join())).toMatchObject({ key: keys[1], backend: "http://10.0.0.1:8787" });
    expect(absent).toMatchObject({ code: 3, stdout: [] });
    expect(absent.stderr[0]).toContain("nobody ever claimed this id");
    expect(neither.code).toBe(2);
  });
});

describe("export and import", () => {
  it("take a ledger from a directory to another one and count every binding", async () => {
    const file = path("bindings");
    expect(await run(["ledger", "export", url, file])).toMatchObject({ code: 0, stdout: [] });
    const dry = await run(["ledger", "import", path("copy"), file, "--dry-run", "--json"]);
    expect(JSON.parse(dry.stdout.join())).toMatchObject({ recordCount: 3, addedCount: 3 });
    expect(dry.code).toBe(0);
    const [there, again, twice] = [
      await run(["ledger", "import", path("copy"), file]),
      await run(["ledger", "import", path("copy"), file]),
      await run(["ledger", "export", url, file]),
    ];
    expect(there).toMatchObject({
      code: 0,
      stdout: ["3 bindings: added 3, present 0, conflict 0, full 0"],
    });
    expect(again.stdout).toEqual(["3 bindings: added 0, present 3, conflict 0, full 0"]);
    expect(twice).toMatchObject({ code: 2, stderr: [expect.stringContaining("is there already")] });
    const [first, second] = await Promise.all([
      run(["ledger", "export", url, "-"]),
      run(["ledger", "export", path("copy"), "-"]),
    ]);
    expect(first.stdout).toHaveLength(5);
    expect(second.stdout.slice(1, -1).sort()).toEqual(first.stdout.slice(1, -1).sort());
  });

  it("a conflict is named and ends with 1; a cut file is refused, and makes no difference", async () => {
    const ledger = await openLedger(path("other"));
    await ledger.claim("run-1", "another body", async () => "http://other");
    await ledger.close();
    const { stdout } = await run(["ledger", "export", url, "-"]);
    await writeFile(path("whole"), `${stdout.join("\n")}\n`);
    await writeFile(path("cut"), `${stdout.slice(0, -1).join("\n")}\n`);
    const cut = await run(["ledger", "import", path("other"), path("cut")]);
    expect(cut).toMatchObject({ code: 1, stderr: [expect.stringContaining("it was cut off")] });
    const conflict = await run(["ledger", "import", path("other"), path("whole")]);
    expect(conflict.code).toBe(1);
    expect(conflict.stdout).toEqual([
      "3 bindings: added 2, present 0, conflict 1, full 0",
      `conflict  ${keys[0]}`,
    ]);
    expect((await run(["ledger", "show", path("other"), "run-1"])).stdout[1]).toBe("owner     http://other");
  });
});

describe("verify", () => {
  it("0 for a clean ledger, 1 with what was found, and nothing is changed", async () => {
    const ledger = await openLedger(path("bad"));
    await ledger.claim("run-1", "body", async () => "http://owner");
    await ledger.close();
    const clean = await run(["ledger", "verify", path("bad")]);
    expect(clean).toMatchObject({ code: 0, stderr: [] });
    expect(clean.stdout).toEqual(["1 records (0 marked), 0 corrupt, 0 foreign, 0 marks without a record"]);
    const corrupt = `${path("bad")}/${"ab".repeat(32)}.json`;
    await writeFile(corrupt, '{"version":1,');
    await writeFile(`${path("bad")}/notes.txt`, "");
    const found = await run(["ledger", "verify", path("bad"), "--json"]);
    expect(found.code).toBe(1);
    expect(JSON.parse(found.stdout.join())).toMatchObject({
      recordCount: 1,
      corrupt: [{ name: "ab".repeat(32), problem: expect.any(String) }],
      foreign: [{ name: "notes.txt" }],
    });
    expect(await readFile(corrupt, "utf8")).toBe('{"version":1,');
    const refused = await run(["ledger", "export", path("bad"), path("bad-export")]);
    expect(refused).toMatchObject({ code: 1, stderr: [expect.stringContaining("Restore it from a backup")] });
  });
});

describe("a place without a ledger", () => {
  it("is refused, and nothing is made there", async () => {
    const [ls, verify, nonsense] = await Promise.all([
      run(["ledger", "ls", path("nothing")]),
      run(["ledger", "verify", path("nothing")]),
      run(["ledger", "ls", "ftp://u:hunter2@x"]),
    ]);
    expect(ls).toMatchObject({ code: 1, stderr: [expect.stringContaining("no ledger was ever created")] });
    expect(verify).toMatchObject({ code: 2 });
    expect(nonsense.code).toBe(2);
    expect(nonsense.stderr.join()).toContain("no ledger lies at ftp");
    expect(nonsense.stderr.join()).not.toContain("hunter2");
    await expect(readFile(path("nothing"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("one of the original router, which has no mark of its creation, is opened with --adopt", async () => {
    const foreign = path("original");
    const source = await openLedger(foreign);
    await source.claim("run-1", "body", async () => "http://owner");
    await source.close();
    const { rm } = await import("node:fs/promises");
    await rm(`${foreign}/cellkit.ledger`);
    expect((await run(["ledger", "ls", foreign])).code).toBe(1);
    expect(await run(["ledger", "ls", foreign, "--adopt"])).toMatchObject({ code: 0 });
    expect(await run(["ledger", "ls", foreign])).toMatchObject({ code: 0 });
  });
});
