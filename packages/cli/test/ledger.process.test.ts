// `cellkit ledger …` on ledgers in directories and in a bucket of this machine.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { exportToFile, loadDigest, openLedger } from "@cellkit/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cellkitCommand } from "../src/index.ts";
import { run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let url: string;
let keys: string[];
/** An export of that ledger. */
let file: string;
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
  url = `${directory.path}/ownership`;
  const ledger = await openLedger(url);
  for (const id of ["run-1", "run-2", "run-3"])
    await ledger.claim(id, `body of ${id}`, async () => "http://10.0.0.1:8787");
  file = path("exported");
  await exportToFile(ledger, file);
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
    const [byId, byKey, absent, neither, both] = await Promise.all([
      run(["ledger", "show", url, "run-2"]),
      run(["ledger", "show", url, "--key", keys[1] ?? "", "--json"]),
      run(["ledger", "show", url, "run-9"]),
      run(["ledger", "show", url]),
      run(["ledger", "show", url, "run-2", "--key", keys[1] ?? ""]),
    ]);
    expect(byId).toMatchObject({ code: 0, stderr: [] });
    expect(byId.stdout.slice(0, 2)).toEqual([`key       ${keys[1]}`, "owner     http://10.0.0.1:8787"]);
    expect(JSON.parse(byKey.stdout.join())).toMatchObject({ key: keys[1], backend: "http://10.0.0.1:8787" });
    expect(absent).toMatchObject({ code: 3, stdout: [] });
    expect(absent.stderr[0]).toContain("nobody ever claimed this id");
    expect(neither.code).toBe(2);
    expect(both.code).toBe(2);
    expect(both.stderr[0]).toContain("give one of the two");
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
      stdout: [
        "3 bindings: added 3, present 0, conflict 0, corrupt 0, full 0",
        expect.stringMatching(/^bindings sum-sha256:/),
      ],
    });
    expect(again.stdout[0]).toBe("3 bindings: added 0, present 3, conflict 0, corrupt 0, full 0");
    // What a person compares after a move: the same line of both ledgers, of the export and of the import.
    const [one, other] = await Promise.all([
      run(["ledger", "verify", url]),
      run(["ledger", "verify", path("copy")]),
    ]);
    expect(one.stdout.at(-1)).toBe(there.stdout[1]);
    expect(other.stdout.at(-1)).toBe(there.stdout[1]);
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
    await writeFile(path("cut"), `${stdout.slice(0, -1).join("\n")}\n`);
    const cut = await run(["ledger", "import", path("other"), path("cut")]);
    expect(cut).toMatchObject({ code: 1, stderr: [expect.stringContaining("it was cut off")] });
    const conflict = await run(["ledger", "import", path("other"), file]);
    expect(conflict.code).toBe(1);
    expect(conflict.stdout).toEqual([
      "3 bindings: added 2, present 0, conflict 1, corrupt 0, full 0",
      expect.stringMatching(/^bindings /),
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
    expect(clean.stdout).toEqual([
      "1 record (0 marked), 0 corrupt, 0 foreign, 0 marks without a record",
      expect.stringMatching(/^bindings sum-sha256:[0-9a-f]{64}$/),
    ]);
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
    expect(refused).toMatchObject({ code: 1, stderr: [expect.stringContaining("cannot be used")] });
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

  it("a file in its place, and a name that nothing has, are told as what they are", async () => {
    await writeFile(path("plain"), "");
    const [file, named] = await Promise.all([
      run(["ledger", "ls", path("plain")]),
      run(["ledger", "ls", url, "--name", "parents"]),
    ]);
    expect(file).toMatchObject({ code: 1, stderr: [expect.stringContaining("it is no directory")] });
    expect(named).toMatchObject({ code: 1, stderr: [expect.stringContaining("no such directory")] });
    for (const { stderr } of [file, named]) expect(stderr.join()).not.toContain("requireExisting");
  });
});

describe("a directory of the original router", () => {
  /** As the original leaves it: records and the lock file, and nothing of ours. */
  async function original(name: string): Promise<string> {
    await mkdir(path(name));
    for (const each of await readdir(url))
      if (each.endsWith(".json") || each === "ownership.lock")
        await copyFile(`${url}/${each}`, `${path(name)}/${each}`);
    return path(name);
  }

  it("is listed, shown, verified and exported, and nothing is left in it", async () => {
    const place = await original("original");
    const before = await readdir(place);
    const dry = await run(["ledger", "import", place, file, "--dry-run"]);
    expect(dry.stdout[0]).toBe("3 bindings: to be added 0, present 3, conflict 0, corrupt 0, full 0");
    const looks = [
      ["ls", place],
      ["show", place, "run-1"],
      ["verify", place],
      ["export", place, "-"],
    ];
    for (const outcome of await Promise.all(looks.map((args) => run(["ledger", ...args]))))
      expect(outcome).toMatchObject({ code: 0 });
    expect(await readdir(place)).toEqual(before);
  });

  it("is adopted once, and then it may be required", async () => {
    const place = await original("adopted");
    const required = ["ledger", "import", place, file, "--require-existing"];
    expect(await run(required)).toMatchObject({ code: 1, stderr: [expect.stringContaining("ledger adopt")] });
    const first = await run(["ledger", "adopt", place]);
    expect(first).toMatchObject({ code: 0, stdout: [expect.stringMatching(/^[0-9a-f-]{36}$/)] });
    const again = await run(["ledger", "adopt", place]);
    expect(again).toMatchObject({
      code: 0,
      stdout: first.stdout,
      stderr: [expect.stringMatching(/already/)],
    });
    expect(await run(required)).toMatchObject({ code: 0 });
  });

  it("an empty or a missing one is not adopted, nor is a bucket", async () => {
    await mkdir(path("empty"));
    const places = [path("empty"), path("nowhere"), "s3://cells/ledger"];
    const outcomes = await Promise.all(places.map((place) => run(["ledger", "adopt", place])));
    expect(outcomes.map(({ code }) => code)).toEqual([1, 1, 2]);
    expect(await readdir(path("empty"))).toEqual([]);
  });

  it.skipIf(process.getuid?.() !== 0)("is not written to by root if it is another user's", async () => {
    const place = await original("of-another-user");
    await chown(place, 12_345, 12_345);
    await chown(`${place}/ownership.lock`, 12_345, 12_345);
    const before = await readdir(place);
    const refused = await run(["ledger", "adopt", place]);
    expect(refused).toMatchObject({ code: 2, stderr: [expect.stringContaining("sudo -u '#12345'")] });
    expect(await run(["ledger", "verify", place])).toMatchObject({ code: 0 });
    expect(await readdir(place)).toEqual(before);
  });
});

describe("import", () => {
  it("takes standard input, and refuses a file that is not there with 2", async () => {
    const { command, args } = cellkitCommand();
    const piped = execFileSync(command, [...args, "ledger", "import", path("piped"), "-"], {
      input: await readFile(file),
      encoding: "utf8",
      stdio: ["pipe", "pipe", "ignore"],
    });
    expect(piped).toContain("3 bindings: added 3");
    expect(await run(["ledger", "import", path("piped"), path("no-file")])).toMatchObject({
      code: 2,
      stderr: [expect.stringContaining("no-file cannot be read (ENOENT)")],
    });
  });

  it("goes into the ledger that the file was made from, unless --name says otherwise", async () => {
    const parents = await openLedger(path("family"), { name: "parents" });
    await parents.claim("p", "body", async () => "http://owner");
    await parents.close();
    await run(["ledger", "export", path("family"), path("parents-file"), "--name", "parents"]);
    const plain = await run(["ledger", "import", path("family-2"), path("parents-file"), "--json"]);
    expect(JSON.parse(plain.stdout.join())).toMatchObject({ ledger: "parents", addedCount: 1 });
    expect(await readdir(path("family-2"))).toEqual(["parents"]);
    const named = await run(["ledger", "import", path("family-3"), path("parents-file"), "--name", "other"]);
    expect(named.code).toBe(0);
    expect(named.stderr.join()).toContain("the file is of the ledger parents, and goes into other");
    const beside = await run(["ledger", "verify", path("family-2"), "--name", "parents"]);
    expect(beside.stdout[0]).toMatch(/^1 record /);
  });

  it("tells a record that cannot be read apart from one that is somebody else's", async () => {
    await run(["ledger", "import", path("damaged"), file]);
    await writeFile(`${path("damaged")}/${keys[0]}.json`, "{");
    const found = await run(["ledger", "import", path("damaged"), file]);
    expect(found.code).toBe(1);
    expect(found.stdout[0]).toBe("3 bindings: added 0, present 2, conflict 0, corrupt 1, full 0");
    expect(found.stdout.at(-1)).toBe(`corrupt  ${keys[0]}`);
    expect(found.stderr.join()).toContain("1 record of this ledger cannot be read");
    // As docs/move-a-ledger.md has it.
    await rename(`${path("damaged")}/${keys[0]}.json`, path("broken-record"));
    const mended = await run(["ledger", "import", path("damaged"), file]);
    expect(mended.stdout[0]).toBe("3 bindings: added 1, present 2, conflict 0, corrupt 0, full 0");
    expect(await run(["ledger", "verify", path("damaged")])).toMatchObject({ code: 0 });
  });

  it("tells before anything is written that there will be no room, and of a doubtful directory", async () => {
    const dry = await run(["ledger", "import", path("small"), file, "--dry-run", "--capacity", "2"]);
    expect(dry).toMatchObject({ code: 1 });
    expect(dry.stdout[0]).toBe("3 bindings: to be added 2, present 0, conflict 0, corrupt 0, full 1");
    await mkdir(path("home"));
    await writeFile(`${path("home")}/notes.txt`, "");
    const told = await run(["ledger", "import", path("home"), file]);
    expect(told.stderr.join()).toContain("notes.txt for one: is it the right directory?");
    const memory = await mkdtemp("/dev/shm/cellkit-import-test-");
    try {
      expect((await run(["ledger", "import", memory, file])).stderr.join()).toContain(
        "forgets with the machine",
      );
    } finally {
      await rm(memory, { recursive: true });
    }
  });
});

describe("sql", () => {
  it("prints the statement for whoever may make tables", async () => {
    const { stdout, code } = await run(["ledger", "sql", "--role", "router"]);
    expect(code).toBe(0);
    expect(stdout[0]).toBe("CREATE TABLE cellkit_ledger (");
    expect(stdout.at(-2)).toBe(");");
    expect(stdout.at(-1)).toBe("GRANT SELECT, INSERT, UPDATE, DELETE ON cellkit_ledger TO router;");
  });
});

it("a reader that has seen enough ends a command, and nothing crashes", async () => {
  const ledger = await openLedger(path("many"));
  const ids = Array.from({ length: 3_000 }, (_, at) => `run-${at}`);
  await Promise.all(ids.map((id) => ledger.claim(id, "body", async () => "http://owner")));
  await ledger.close();
  const { command, args } = cellkitCommand();
  for (const words of [
    ["ledger", "ls", path("many"), "--limit", "0"],
    ["ledger", "export", path("many"), "-"],
  ]) {
    const child = spawn(command, [...args, ...words], { stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    await once(child.stdout, "data");
    child.stdout.destroy();
    const [code] = await once(child, "close");
    expect(stderr, words[1]).not.toMatch(/EPIPE|at .*\.ts/);
    expect(code, words[1]).toBe(words[1] === "ls" ? 0 : 130);
  }
});
