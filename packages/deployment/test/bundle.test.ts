import { execFileSync } from "node:child_process";
import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BundleError, bundleProject, ProjectNotFoundError, WranglerConfigError } from "../src/index.ts";
import { project, smallConfig, smallProject, smallWorker } from "./support/projects.ts";

/** A day on which Node's modules were still behind a flag. */
const formerDate = { compatibility_date: "2026-08-03" };

/** The error of a project that cannot be bundled. */
async function failure(directory: string): Promise<unknown> {
  return bundleProject(directory).then(
    () => "it was bundled",
    (error: unknown) => error,
  );
}

/** The text of a module. */
function textOf(bundle: Awaited<ReturnType<typeof bundleProject>>, name: string): string {
  return new TextDecoder().decode(bundle.modules.find((module) => module.name === name)?.bytes);
}

const wasm = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const kept = {
  "src/worker.js": `${smallWorker}
    import add from "./add.wasm?module"; import same from "../src/add.wasm"; import page from "./page.html";
    import note from "./note.txt"; import schema from "./schema.sql"; import key from "./key.bin";
    console.log(add, same, page, note, schema, key);`,
  "src/add.wasm": wasm,
  "src/page.html": "<p>",
  "src/note.txt": "note",
  "src/schema.sql": "SELECT 1",
  "src/key.bin": new Uint8Array([1, 2, 3]),
};

describe("the manifest", () => {
  it("of a project with cells, variables and every kind of module is the golden one", async () => {
    const directory = await smallProject(
      {
        compatibility_flags: ["nodejs_compat"],
        vars: { GREETING: "hello", LIMITS: { rooms: 3, names: ["a", null] } },
        migrations: [
          { tag: "v1", new_sqlite_classes: ["Counter"] },
          { tag: "v2", new_sqlite_classes: [] },
        ],
      },
      kept,
    );
    const { manifest } = await bundleProject(directory);
    await expect(`${JSON.stringify(manifest, null, 2)}\n`).toMatchFileSnapshot(
      "golden/every-kind.manifest.json",
    );
  });

  it("of the smallest project is the golden one", async () => {
    const { manifest } = await bundleProject(
      await project({
        "wrangler.jsonc": '{ "name": "least", "main": "a.js", "compatibility_date": "2026-11-01" }',
        "a.js": "export default {};",
      }),
    );
    await expect(`${JSON.stringify(manifest, null, 2)}\n`).toMatchFileSnapshot("golden/least.manifest.json");
  });

  it("is the same wherever the project lies", async () => {
    const [one, other] = await Promise.all([smallProject({}, kept), smallProject({}, kept)]);
    expect((await bundleProject(one)).manifest).toEqual((await bundleProject(other)).manifest);
  });
});

describe("bundling", () => {
  it("gives one ES module, with TypeScript and packages inside and the runtime's modules outside", async () => {
    const directory = await project({
      "wrangler.json": smallConfig({ main: "src/worker.ts" }),
      "src/worker.ts": `${smallWorker} import { word } from "words"; console.log(word satisfies string);`,
      "node_modules/words/package.json":
        '{ "exports": { "workerd": "./workerd.js", "default": "./other.js" } }',
      "node_modules/words/workerd.js": 'export const word = "from the workerd condition";',
      "node_modules/words/other.js": 'export const word = "from elsewhere";',
    });
    const bundle = await bundleProject(directory);
    expect(bundle.modules.map(({ name, kind }) => [name, kind])).toEqual([["index.js", "esm"]]);
    expect(textOf(bundle, "index.js")).toContain("from the workerd condition");
    expect(textOf(bundle, "index.js")).toContain('from "cloudflare:workers"');
    expect(bundle.inputs.map((path) => path.slice(directory.length + 1))).toEqual([
      "wrangler.json",
      "src/worker.ts",
    ]);
  });

  it("prefers the conditions that it is given", async () => {
    const directory = await smallProject(
      {},
      {
        "src/worker.js": `${smallWorker} import { word } from "words"; console.log(word);`,
        "node_modules/words/package.json": '{ "exports": { "mine": "./mine.js", "workerd": "./other.js" } }',
        "node_modules/words/mine.js": 'export const word = "mine";',
        "node_modules/words/other.js": 'export const word = "other";',
      },
    );
    const bundle = await bundleProject(directory, { conditions: ["mine"] });
    expect(textOf(bundle, "index.js")).toContain('"mine"');
  });

  it("keeps wasm, text and data as modules of their own under names that are unique", async () => {
    const directory = await smallProject({}, kept);
    const bundle = await bundleProject(directory);
    expect(bundle.modules.map(({ name, kind }) => [name.replace(/^[0-9a-f]{16}-/, "~"), kind])).toEqual([
      ["index.js", "esm"],
      ["~add.wasm", "wasm"],
      ["~page.html", "text"],
      ["~note.txt", "text"],
      ["~schema.sql", "text"],
      ["~key.bin", "data"],
    ]);
    for (const { name } of bundle.modules.slice(1)) {
      expect(textOf(bundle, "index.js")).toContain(`from "./${name}"`);
    }
    expect(bundle.modules[1]?.bytes).toEqual(Buffer.from(wasm));
    expect(bundle.inputs).toContain(join(directory, "src/page.html"));
  });

  it("gives a Worker Node's modules behind nodejs_compat, with and without prefix, by import and by require", async () => {
    const directory = await smallProject(
      { ...formerDate, compatibility_flags: ["nodejs_compat"] },
      {
        "src/worker.js": `${smallWorker} import { Buffer } from "buffer"; import "node:util"; import "./old.cjs"; console.log(Buffer);`,
        "src/old.cjs": 'const events = require("events"); module.exports = events;',
      },
    );
    const text = textOf(await bundleProject(directory), "index.js");
    expect(text).toContain('from "node:buffer"');
    expect(text).toContain('from "node:events"');
    expect(text).not.toContain('require("events")');
  });

  it("only warns of a module of Node that a package tries to load", async () => {
    const directory = await smallProject(formerDate, {
      "src/worker.js": `${smallWorker} try { await import("node:fs"); } catch { console.log("none"); }`,
    });
    expect((await bundleProject(directory)).warnings).toEqual([
      expect.stringMatching(
        /^src\/worker\.js:\d+:\d+ node:fs is there only with the compatibility flag nodejs_compat, or with/,
      ),
    ]);
  });

  it("takes an installed package before a module of Node without the flag", async () => {
    const directory = await smallProject(formerDate, {
      "src/worker.js": `${smallWorker} import { word } from "events"; console.log(word);`,
      "node_modules/events/package.json": '{ "main": "./events.mjs" }',
      "node_modules/events/events.mjs": 'export const word = "installed";',
    });
    expect(textOf(await bundleProject(directory), "index.js")).toContain('"installed"');
  });

  it("gives node:async_hooks behind nodejs_als", async () => {
    const source = `${smallWorker} import { AsyncLocalStorage } from "node:async_hooks"; console.log(AsyncLocalStorage);`;
    const directory = await smallProject(
      { ...formerDate, compatibility_flags: ["nodejs_als"] },
      { "src/worker.js": source },
    );
    expect(textOf(await bundleProject(directory), "index.js")).toContain('from "node:async_hooks"');
  });

  it("takes the chat example", async () => {
    const bundle = await bundleProject(fileURLToPath(new URL("../../../examples/chat", import.meta.url)));
    expect(bundle).toMatchObject({ scriptName: "chat", warnings: [], manifest: { do_classes: ["Room"] } });
    expect(textOf(bundle, "index.js")).toContain("setWebSocketAutoResponse");
  });
});

describe("a Worker that cannot be bundled", () => {
  it.each([
    ["does not compile", "export default {", /^src\/worker\.js:1:\d+ /],
    [
      "imports a package that is not there",
      `${smallWorker} import "nowhere";`,
      /Could not resolve "nowhere"/,
    ],
    ["misses a class", "export default {};", /^src\/worker\.js does not export the class Counter, /],
    [
      "exports nothing",
      "addEventListener('fetch', () => {});",
      /^src\/worker\.js exports nothing: a Worker is/,
    ],
    [
      "imports a module of Node without the flag",
      `${smallWorker} import "node:fs";`,
      /node:fs is there only with the compatibility flag nodejs_compat, or with/,
    ],
    [
      "imports one without prefix",
      `${smallWorker} import "fs";`,
      /node:fs is there only with the compatibility flag nodejs_compat/,
    ],
    [
      "requires a file that is a module",
      `${smallWorker} console.log(require("./note.txt"));`,
      /\.\/note\.txt is kept as a module of its own: use import instead of require$/,
    ],
    [
      "imports a file that is not there",
      `${smallWorker} import x from "./x.wasm"; x;`,
      /Could not resolve "\.\/x\.wasm"/,
    ],
  ])("is refused when it %s", async (_, source, expected) => {
    const error = await failure(
      await smallProject(formerDate, { "src/worker.js": source, "src/note.txt": "note" }),
    );
    expect(error).toBeInstanceOf(BundleError);
    expect(error).toMatchObject({ problems: [expect.stringMatching(expected)] });
  });

  it("lists all missing classes and keeps esbuild's failure as the cause", async () => {
    const two = await failure(
      await smallProject({ migrations: [{ tag: "v1", new_sqlite_classes: ["Counter", "A", "B"] }] }),
    );
    expect(two).toMatchObject({ problems: { length: 2 } });
    const broken = await failure(await smallProject({}, { "src/worker.js": "export default {" }));
    expect(broken).toMatchObject({ cause: expect.objectContaining({ errors: expect.anything() }) });
  });

  it("is refused when its variables make the manifest too large", async () => {
    const error = await failure(await smallProject({ vars: { BIG: "x".repeat(1_048_200) } }));
    expect(error).toMatchObject({
      problems: [expect.stringMatching(/^the manifest has \d+ bytes, at most 1048576/)],
    });
  });
});

describe("no_bundle", () => {
  const files = {
    "dist/main.js": `${smallWorker} import { a } from "./lib/a.mjs"; import page from "./page.html"; console.log(a, page); import("./lazy.js");`,
    "dist/lib/a.mjs": 'export { a } from "./b.js"; // a comment that stays',
    "dist/lib/b.js": "export const a = 1;",
    "dist/lazy.js": "export default 1;",
    "dist/page.html": "<p>",
    "dist/unused.js": "export default 2;",
  };
  const changes = { main: "dist/main.js", no_bundle: true };

  it("takes the main file and what it imports byte for byte, under their own names", async () => {
    const directory = await smallProject(changes, files);
    const bundle = await bundleProject(directory);
    expect(bundle.manifest.main_module).toBe("main.js");
    expect(bundle.modules.map(({ name, kind }) => `${name} ${kind}`).sort()).toEqual([
      "lazy.js esm",
      "lib/a.mjs esm",
      "lib/b.js esm",
      "main.js esm",
      "page.html text",
    ]);
    for (const { name, bytes } of bundle.modules) {
      expect(Buffer.from(bytes)).toEqual(await readFile(join(directory, "dist", name)));
    }
  });

  it.each([
    [
      "a package",
      'import "words";',
      /^dist\/main\.js:\S+ words is a package, and no_bundle takes only relative imports/,
    ],
    ["a require", 'require("./lazy.js");', /\.\/lazy\.js is not loaded by import/],
    ["another kind of file", 'import "./data.json";', /\.\/data\.json is neither \.js, \.mjs/],
    ["a name without its ending", 'import "./lazy";', /Could not resolve "\.\/lazy"/],
    [
      "a file outside of the folder",
      'import "../src/worker.js";',
      /^\.\.\/src\/worker\.js cannot be a module's name/,
    ],
    ["a name with a space", 'import "./a b.js";', /^a b\.js cannot be a module's name/],
    [
      "a name of a node's own",
      'import "./cellkit-entry.js";',
      /^cellkit-entry\.js cannot be a module's name: .* is taken$/,
    ],
    ["another of them", 'import "./cellkit-runtime.js";', /^cellkit-runtime\.js cannot be a module's name/],
  ])("refuses %s", async (_, line, expected) => {
    const directory = await smallProject(changes, {
      ...files,
      "dist/main.js": `${smallWorker} ${line}`,
      "dist/data.json": "{}",
      "dist/a b.js": "",
      "dist/cellkit-entry.js": "",
      "dist/cellkit-runtime.js": "",
    });
    expect(await failure(directory)).toMatchObject({ problems: [expect.stringMatching(expected)] });
  });

  it("refuses a main file that is not JavaScript", async () => {
    const error = await failure(await smallProject({ main: "src/worker.ts", no_bundle: true }));
    expect(error).toMatchObject({
      problems: ["with no_bundle, main is a .js or .mjs file, not src/worker.ts"],
    });
  });
});

describe("finding the configuration", () => {
  it.each([
    [
      "a directory that is not there",
      {},
      "nowhere",
      /has no wrangler\.jsonc or wrangler\.json: name the directory/,
    ],
    [
      "a directory without one",
      { "a.txt": "" },
      "",
      /has no wrangler\.jsonc or wrangler\.json: name the directory/,
    ],
    [
      "both",
      { "wrangler.json": "{}", "wrangler.jsonc": "{}" },
      "",
      /has both wrangler\.jsonc and wrangler\.json/,
    ],
    [
      "only a wrangler.toml",
      { "wrangler.toml": 'name = "a"' },
      "",
      /is TOML, and .* to convert it, run there: python3/,
    ],
  ])("%s is refused", async (_, files, below, expected) => {
    const error = await failure(join(await project(files), below));
    expect(error).toBeInstanceOf(ProjectNotFoundError);
    expect(error).toMatchObject({ message: expect.stringMatching(expected) });
  });

  it("a wrong configuration is refused with the path of its file and every problem", async () => {
    const directory = await smallProject({ name: "A B", d1_databases: [] });
    const error = await failure(directory);
    expect(error).toBeInstanceOf(WranglerConfigError);
    expect(error).toMatchObject({
      message: expect.stringContaining(`${join(directory, "wrangler.json")}, 2 problems:\n  `),
      problems: [expect.stringMatching(/^name: /), expect.stringMatching(/^d1_databases is not supported; /)],
    });
  });

  it("a configuration file of more than 1 MiB is refused", async () => {
    const directory = await project({ "wrangler.json": " ".repeat(1024 * 1024 + 1) });
    expect(await failure(directory)).toMatchObject({
      problems: [expect.stringMatching(/at most 1048576 are read$/)],
    });
  });
});

describe("what is no regular file is refused by name instead of waited for", () => {
  /** A FIFO in a project. */
  function fifo(directory: string, file: string): void {
    execFileSync("mkfifo", [join(directory, file)]);
  }

  it.each([
    [
      "a module",
      {},
      `${smallWorker} import "./pipe.js";`,
      "pipe.js",
      /src\/pipe\.js is a FIFO: only regular files are read$/,
    ],
    [
      "a file that is kept",
      {},
      `${smallWorker} import "./pipe.txt";`,
      "pipe.txt",
      /pipe\.txt is a FIFO: only/,
    ],
    [
      "a module with no_bundle",
      { no_bundle: true },
      `${smallWorker} import "./pipe.js";`,
      "pipe.js",
      /pipe\.js is a FIFO: only/,
    ],
    [
      "a file with no_bundle",
      { no_bundle: true },
      `${smallWorker} import "./pipe.txt";`,
      "pipe.txt",
      /pipe\.txt is a FIFO: only/,
    ],
    ["the main file", { main: "src/pipe.js" }, "", "pipe.js", /src\/pipe\.js is a FIFO: only/],
  ])("%s", async (_, changes, source, file, expected) => {
    const directory = await smallProject(changes, { "src/worker.js": source });
    fifo(directory, `src/${file}`);
    expect(await failure(directory)).toMatchObject({
      code: "CELLKIT_DEPLOYMENT_BUNDLE",
      problems: [expect.stringMatching(expected)],
    });
  });

  it("a device", async () => {
    const directory = await smallProject({}, { "src/worker.js": `${smallWorker} import "./zero.bin";` });
    await symlink("/dev/zero", join(directory, "src/zero.bin"));
    expect(await failure(directory)).toMatchObject({
      problems: [expect.stringMatching(/dev\/zero is a device: only regular files are read$/)],
    });
  });

  it("the configuration", async () => {
    const directory = await project({});
    fifo(directory, "wrangler.jsonc");
    expect(await failure(directory)).toMatchObject({
      code: "CELLKIT_DEPLOYMENT_NO_PROJECT",
      message: `${join(directory, "wrangler.jsonc")} is a FIFO: only regular files are read`,
    });
  });
});

it("bundling ends with its signal, whatever it waits for", async () => {
  const directory = await smallProject();
  await expect(bundleProject(directory, { signal: AbortSignal.abort() })).rejects.toMatchObject({
    name: "AbortError",
  });
  const stop = new AbortController();
  const bundling = bundleProject(directory, { signal: stop.signal });
  stop.abort(new TypeError("enough"));
  await expect(bundling).rejects.toThrow("enough");
  await expect(bundleProject(directory, { signal: new AbortController().signal })).resolves.toMatchObject({
    scriptName: "counter",
  });
});
