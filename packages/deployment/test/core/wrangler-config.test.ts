import { describe, expect, it } from "vitest";
import { compatibilityProblems } from "../../src/core/compatibility.ts";
import { flagLines, newestDate } from "../../src/core/runtime-flags.ts";
import { parseWranglerConfig } from "../../src/core/wrangler-config.ts";
import { smallConfig } from "../support/projects.ts";

/** The problems of a configuration text. */
function problems(text: string): readonly string[] {
  const result = parseWranglerConfig(text);
  return result.kind === "problems" ? result.problems : [];
}

const platform =
  "supported are durable_objects, vars, secrets from the node's secrets file, and .wasm, .txt, .html, .sql and .bin modules";

describe("a configuration that is accepted", () => {
  it("may hold comments, trailing commas, a byte order mark and a $schema", () => {
    const text = `\uFEFF{
      // a comment
      "$schema": "node_modules/wrangler/config-schema.json",
      "name": "a", /* another */ "main": "a.js", "compatibility_date": "2026-11-01",
    }`;
    expect(parseWranglerConfig(text)).toEqual({
      kind: "config",
      warnings: [],
      config: {
        name: "a",
        main: "a.js",
        compatibility_date: "2026-11-01",
        compatibility_flags: [],
        durable_objects: { bindings: [] },
        migrations: [],
        vars: {},
        no_bundle: false,
      },
    });
  });

  it("may name its own script in a durable object binding", () => {
    const bindings = [{ name: "C", class_name: "Counter", script_name: "counter" }];
    expect(problems(smallConfig({ durable_objects: { bindings } }))).toEqual([]);
  });

  it("may give a variable any JSON value", () => {
    const vars = { TEXT: "x", LIST: [1, null, { a: true }], ZERO: 0 };
    const result = parseWranglerConfig(smallConfig({ vars }));
    expect(result.kind === "config" && result.config.vars).toEqual(vars);
  });

  it("warns once for each key that has no effect here", () => {
    const result = parseWranglerConfig(
      smallConfig({
        observability: { enabled: true },
        routes: ["x"],
        dev: { port: 1 },
        placement: { mode: "smart" },
      }),
    );
    expect(result.kind === "config" && result.warnings).toEqual([
      "observability is ignored: logs and metrics are the node's own",
      "routes is ignored: what the fleet's address leads to is the ingress's matter",
      "dev is ignored: cellkit dev has flags of its own",
      "placement is ignored: a cell lives on whichever node owns it",
    ]);
  });
});

describe("a configuration that cannot be read", () => {
  it.each([
    ["an empty file", "", ["1:1 value expected"]],
    ["a list", "[]", ["1:1 the configuration is one object"]],
    ["a missing comma", '{\n  "name": "a"\n  "main": "b"\n}', ["3:3 comma expected"]],
    ["a key twice", '{\n  "name": "a",\n  "name": "b"\n}', ['3:3 the key "name" appears twice']],
    ["the key __proto__", '{ "vars": { "__proto__": {} } }', ["1:13 the key __proto__ is not allowed"]],
    ["text after the end", "{}\nx", ["2:1 invalid symbol"]],
    ["an unclosed string", '{ "name": "a', ["1:11 unexpected end of string", "1:13 close brace expected"]],
  ])("is refused with line and column: %s", (_, text, expected) => {
    expect(problems(text)).toEqual(expected);
  });
});

describe("a key is refused by its name", () => {
  it.each([
    "ai",
    "analytics_engine_datasets",
    "assets",
    "browser",
    "d1_databases",
    "dispatch_namespaces",
    "hyperdrive",
    "images",
    "kv_namespaces",
    "mtls_certificates",
    "pipelines",
    "queues",
    "r2_buckets",
    "ratelimits",
    "secrets_store_secrets",
    "send_email",
    "services",
    "tail_consumers",
    "triggers",
    "vectorize",
    "version_metadata",
    "workflows",
  ])("%s, with what is supported", (key) => {
    expect(problems(smallConfig({ [key]: [] }))).toEqual([`${key} is not supported; ${platform}`]);
  });

  it("several of the platform, and what is supported is said once", () => {
    expect(problems(smallConfig({ kv_namespaces: [], ai: {}, colour: 1, r2_buckets: [] }))).toEqual([
      `kv_namespaces, ai, r2_buckets are not supported; ${platform}`,
      "colour is not a known key; remove it",
    ]);
  });

  it.each([
    ["env", /^env is not supported: keep one configuration directory/],
    ["rules", /^rules is not supported: \.wasm, /],
    ["build", /^build is not supported: run your build first/],
    ["secrets", /^secrets is not supported: secrets do not travel/],
    ["nmae", /^nmae is not a known key; remove it$/],
    ["toString", /^toString is not a known key; remove it$/],
  ])("%s, with what to do instead", (key, expected) => {
    expect(problems(smallConfig({ [key]: {} }))).toEqual([expect.stringMatching(expected)]);
  });

  it.each([
    ["new_classes", "cells keep their data in SQLite: name the class in new_sqlite_classes"],
    ["renamed_classes", "renaming is not supported, a cell's id holds the name of its class: keep the name"],
    [
      "deleted_classes",
      "deleting is not supported: leave the class in new_sqlite_classes and remove its binding",
    ],
    ["transferred_classes", "a fleet runs one script, so there is none to take a class from"],
  ])("migrations: %s", (key, reason) => {
    const migrations = [{ tag: "v1", new_sqlite_classes: ["Counter"], [key]: [] }];
    expect(problems(smallConfig({ migrations }))).toEqual([
      `migrations[0].${key} is not supported: ${reason}`,
    ]);
  });

  it("an unknown key inside a binding", () => {
    const bindings = [{ name: "C", class_name: "Counter", environment: "x" }];
    expect(problems(smallConfig({ durable_objects: { bindings } }))).toEqual([
      "durable_objects.bindings[0].environment is not supported",
    ]);
  });
});

describe("a value is refused with its path", () => {
  it.each([
    ["a missing name", { name: undefined }, "name is missing"],
    ["a missing main", { main: undefined }, "main is missing"],
    ["a missing date", { compatibility_date: undefined }, "compatibility_date is missing"],
    [
      "a day that does not exist",
      { compatibility_date: "2026-02-30" },
      /^compatibility_date: .* looks like 2026-11-01/,
    ],
    ["a name with a slash", { name: "a/b" }, /^name: a script's name has 1 to 63 of/],
    ["a name that is too long", { name: "a".repeat(64) }, /^name: a script's name has/],
    ["a flag with spaces", { compatibility_flags: ["node compat"] }, /^compatibility_flags\[0\]: /],
    [
      "a class that is no identifier",
      { migrations: [{ tag: "a", new_sqlite_classes: ["A-B"] }] },
      /^migrations\[0\]/,
    ],
    [
      "a variable that is no identifier",
      { vars: { "a-b": "x" } },
      /^vars\["a-b"\]: a binding's name is an identifier/,
    ],
    ["no_bundle as text", { no_bundle: "yes" }, /^no_bundle: expected boolean/],
  ])("%s", (_, changes, expected) => {
    expect(problems(smallConfig(changes))[0]).toEqual(
      typeof expected === "string" ? expected : expect.stringMatching(expected),
    );
  });
});

describe("members that contradict each other are refused", () => {
  it.each([
    [
      "a binding of another script's class",
      { durable_objects: { bindings: [{ name: "C", class_name: "Counter", script_name: "other" }] } },
      "durable_objects.bindings[0].script_name is other: a fleet runs one script, so only classes of counter itself can be bound",
    ],
    [
      "a bound class that no migration declares",
      { migrations: [] },
      "durable_objects.bindings[0]: no migration declares Counter: add it to new_sqlite_classes of a migration",
    ],
    [
      "two bindings of one name",
      {
        durable_objects: {
          bindings: [
            { name: "C", class_name: "Counter" },
            { name: "C", class_name: "Counter" },
          ],
        },
      },
      "durable_objects.bindings[1]: another binding is named C too",
    ],
    [
      "a variable named like a binding",
      { vars: { COUNTERS: "x" } },
      "vars.COUNTERS: a durable object binding is named COUNTERS too",
    ],
    [
      "a tag twice",
      { migrations: [{ tag: "v1", new_sqlite_classes: ["Counter"] }, { tag: "v1" }] },
      "migrations: the tag v1 appears twice",
    ],
    [
      "a class declared twice",
      { migrations: [{ tag: "v1", new_sqlite_classes: ["Counter", "Counter"] }] },
      "migrations: the class Counter appears twice",
    ],
    [
      "a flag twice",
      { compatibility_flags: ["nodejs_compat", "nodejs_compat"] },
      "compatibility_flags: the flag nodejs_compat appears twice",
    ],
  ])("%s", (_, changes, expected) => {
    expect(problems(smallConfig(changes))).toEqual([expected]);
  });
});

it("all problems of a file are listed at once", () => {
  expect(problems(smallConfig({ name: "A B", kv_namespaces: [], queues: {}, oops: 1 }))).toHaveLength(3);
});

describe("what no node can load is refused", () => {
  it.each(["default", "CellkitControl", "CellkitPeer", "CellkitPublic"])(
    "a class of cells named %s",
    (name) => {
      const changes = { migrations: [{ tag: "v1", new_sqlite_classes: ["Counter", name] }] };
      expect(problems(smallConfig(changes))).toEqual([
        `migrations[0].new_sqlite_classes[1]: a class of cells cannot be named ${name}, which a node needs for itself: rename it`,
      ]);
    },
  );

  it.each([
    ["1999-12-31", "1999-12-31 is before 2000-01-01, the oldest there is"],
    [
      "2999-01-01",
      `2999-01-01 is after ${newestDate}, the newest that a node's runtime knows: use that one or an earlier one`,
    ],
    ["2026-02-30", "a compatibility date looks like 2026-11-01"],
    ["2026-1-3", "a compatibility date looks like 2026-11-01"],
    ["latest", "a compatibility date looks like 2026-11-01"],
  ])("the compatibility date %s", (compatibility_date, problem) => {
    expect(problems(smallConfig({ compatibility_date }))).toEqual([`compatibility_date: ${problem}`]);
  });

  it.each([
    [["nodejs_compatt"], "nodejs_compatt is not a flag of the runtime; the nearest is nodejs_compat"],
    [["node_compat"], "node_compat is not a flag of the runtime; the nearest is nodejs_compat"],
    [["nodejs_compat_v3"], "nodejs_compat_v3 is not a flag of the runtime; the nearest is nodejs_compat_v2"],
    [["url_standart"], "url_standart is not a flag of the runtime; the nearest is url_standard"],
    [
      ["nodejs_compat", "no_nodejs_compat"],
      "no_nodejs_compat and nodejs_compat contradict each other: keep one of them",
    ],
    [
      ["disable_ctx_exports"],
      "disable_ctx_exports is not supported: a node that drains finds the cells by ctx.exports",
    ],
    [
      ["python_workers"],
      "python_workers is not supported: a node runs Workers of JavaScript and WebAssembly",
    ],
  ])("the compatibility flags %j", (compatibility_flags, problem) => {
    expect(problems(smallConfig({ compatibility_flags }))).toEqual([`compatibility_flags: ${problem}`]);
  });

  it("and the newest date and every flag by itself are taken", () => {
    expect(problems(smallConfig({ compatibility_date: newestDate }))).toEqual([]);
    const flags = flagLines.trim().split(/\s/);
    expect(flags.length).toBeGreaterThan(300);
    expect(flags.filter((flag) => compatibilityProblems("2026-11-01", [flag]).length > 0)).toEqual([
      "disable_ctx_exports",
      "python_workers",
    ]);
  });
});
