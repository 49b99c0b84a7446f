import { describe, expect, it } from "vitest";
import { planWorker } from "../../src/core/worker-plan.ts";
import { DeploymentUnsupportedError } from "../../src/errors.ts";
import { type TestWorker, testBundle } from "../support/bundles.ts";

const plan = (worker: Partial<TestWorker>) =>
  planWorker(testBundle({ source: "export default {}", ...worker }));

describe("planWorker", () => {
  it("puts the main module first", () => {
    const text = { name: "a.txt", kind: "text", bytes: new Uint8Array() } as const;
    const bundle = testBundle({ source: "export default {}", modules: [text] });
    const planned = planWorker({ ...bundle, modules: [...bundle.modules].reverse() });
    expect(planned.modules.map(({ name }) => name)).toEqual(["index.js", "a.txt"]);
  });

  it("takes every class that is declared or bound, once, and says which have SQLite", () => {
    const bundle = testBundle({
      source: "",
      classes: ["Room", "Log"],
      namespaces: { A: "Room", B: "Extra" },
    });
    const manifest = { ...bundle.manifest, sqlite_classes: ["Room"] };
    expect(planWorker({ ...bundle, manifest }).cells).toEqual([
      { className: "Room", sqlite: true },
      { className: "Log", sqlite: false },
      { className: "Extra", sqlite: false },
    ]);
  });

  it("turns vars into text and JSON bindings", () => {
    expect(plan({ vars: { GREETING: "hi", LIMITS: { max: 3 } } }).bindings).toEqual([
      { kind: "text", name: "GREETING", text: "hi" },
      { kind: "json", name: "LIMITS", json: '{"max":3}' },
    ]);
  });

  it.each([
    ["adds the flag for ctx.exports before it is implied", "2025-11-16", [], ["enable_ctx_exports"]],
    ["leaves the flags alone once the date implies it", "2025-11-17", ["nodejs_compat"], ["nodejs_compat"]],
    ["does not name the flag twice", "2024-01-01", ["enable_ctx_exports"], ["enable_ctx_exports"]],
  ])("%s", (_, compatibilityDate, compatibilityFlags, expected) => {
    expect(plan({ compatibilityDate, compatibilityFlags }).compatibilityFlags).toEqual(expected);
  });

  it.each(["cellkit-entry.js", "cellkit-runtime.js", "cellkit-peer.js"])(
    "refuses a module named %s",
    (name) => {
      const modules = [{ name, kind: "esm", bytes: new Uint8Array() }] as const;
      expect(() => plan({ modules })).toThrow(DeploymentUnsupportedError);
    },
  );

  it("refuses a deployment without its main module", () => {
    const bundle = testBundle({ source: "" });
    expect(() => planWorker({ ...bundle, modules: [] })).toThrow(/main module index\.js/);
  });
});
