import { describe, expect, it } from "vitest";
import { renderEntryModule } from "../../src/core/entry-module.ts";
import { planWorker } from "../../src/core/worker-plan.ts";
import { cellKey, renderWorkerdConfig, type WorkerdInstance } from "../../src/core/workerd-config.ts";
import { type TestWorker, testBundle } from "../support/bundles.ts";

const instance: WorkerdInstance = {
  storageDirectory: "/data/cells",
  publicSocket: "/run/cellkit/public",
  controlSocket: "/run/cellkit/control",
  peerSocket: "/run/cellkit/peer",
  peerRpcSocket: "/run/cellkit/rpc",
  node: "node-1",
  cfBlobHeader: "cellkit-cf-0123",
  bucketUrl: "s3://fleet/prefix",
  bucketOptions: ["aws_region=us-east-1", "aws_credentials_file=/data/workerd/credentials"],
  advertise: "10.0.0.7:8081",
  clusterKey: "00".repeat(32),
  stopTimeoutMs: 8000,
  unsafeTimeDivisor: 1,
  vars: {},
  secrets: {},
};
const runtime = { runtime: "// runtime", peer: "// peer" };
const full: TestWorker = {
  source: "export default {}; export class Room {}; export class $Log {}",
  classes: ["Room", "$Log"],
  namespaces: { ROOM: "Room" },
  vars: { GREETING: 'say "hi"\n', LIMITS: { max: 3 } },
  compatibilityDate: "2024-10-01",
  compatibilityFlags: ["nodejs_compat"],
  modules: [
    { name: "lib/add.wasm", kind: "wasm", bytes: Uint8Array.of(0, 97, 115, 109) },
    { name: "page.html", kind: "text", bytes: new TextEncoder().encode("<p>") },
    { name: "key.bin", kind: "data", bytes: Uint8Array.of(1, 2) },
  ],
};
const plan = (worker: TestWorker) => ({ ...planWorker(testBundle(worker)), version: "0123456789abcdef" });

describe("renderWorkerdConfig", () => {
  it("writes every part of a deployment", async () => {
    const rendered = renderWorkerdConfig(plan(full), { ...instance, secrets: { TOKEN: "s3cret" } }, runtime);
    await expect(rendered.config).toMatchFileSnapshot("../golden/full.capnp");
  });

  it("writes a Worker without cells, vars or secrets", async () => {
    const rendered = renderWorkerdConfig(plan({ source: "export default {}" }), instance, runtime);
    await expect(rendered.config).toMatchFileSnapshot("../golden/bare.capnp");
  });

  it("embeds the entry module, the runtime and the modules of the deployment, in that order", () => {
    const { files } = renderWorkerdConfig(plan(full), instance, runtime);
    expect(files.map(({ name }) => name)).toEqual(files.map((_, index) => `module-${index}`));
    expect(Buffer.from(files[0]?.bytes ?? []).toString()).toBe(renderEntryModule(plan(full)));
    expect(Buffer.from(files[1]?.bytes ?? []).toString()).toBe(runtime.runtime);
    expect(Buffer.from(files[2]?.bytes ?? []).toString()).toBe(runtime.peer);
    expect(files).toHaveLength(7);
  });

  it("lets the node's vars win over the deployment's, whatever their kind, and a secret over both", () => {
    const vars = { GREETING: "from the node", LIMITS: "none", REGION: "eu", TOKEN: "not secret" };
    const { config } = renderWorkerdConfig(
      plan(full),
      { ...instance, vars, secrets: { TOKEN: "s3cret" } },
      runtime,
    );
    const texts = [...config.matchAll(/\(name = "(\w+)", (?:text|json) = "(.*?)"\)/g)].map(
      ([, ...pair]) => pair,
    );
    expect(Object.fromEntries(texts)).toEqual({ ...vars, TOKEN: "s3cret" });
    expect(texts).toHaveLength(4);
  });

  it("refuses a var of the node that has the name of a binding of cells", () => {
    expect(() => renderWorkerdConfig(plan(full), { ...instance, vars: { ROOM: "x" } }, runtime)).toThrow(
      /^the vars file sets ROOM, which binds cells/,
    );
  });

  it("lets a secret win over a var of the same name", () => {
    const { config } = renderWorkerdConfig(
      plan(full),
      { ...instance, secrets: { GREETING: "secret" } },
      runtime,
    );
    expect(config.match(/name = "GREETING"/g)).toHaveLength(1);
    expect(config).toContain('(name = "GREETING", text = "secret")');
  });

  it("names workerd's time divisor only when it is not 1", () => {
    const render = (unsafeTimeDivisor: number) =>
      renderWorkerdConfig(plan(full), { ...instance, unsafeTimeDivisor }, runtime).config;
    expect(render(1)).not.toContain("unsafeTimeDivisor");
    expect(render(10)).toContain("unsafeTimeDivisor = 10");
  });
});

describe("renderEntryModule", () => {
  it("wraps the cell classes under their own names", async () => {
    await expect(renderEntryModule(plan(full))).toMatchFileSnapshot("../golden/entry.js");
  });

  it("only adds the two entrypoints where there are no cells", async () => {
    const text = renderEntryModule(plan({ source: "export default {}" }));
    await expect(text).toMatchFileSnapshot("../golden/entry-without-cells.js");
  });

  it("keeps a script name with a line end inside its comment", () => {
    const text = renderEntryModule({ ...plan(full), scriptName: "a\nthrow 1" });
    expect(text.split("\n")[0]).toContain("throw 1");
  });
});

describe("cellKey", () => {
  it.each([
    ["chat", "Room", "cells:v1:4:chat:Room"],
    ["é", "Room", "cells:v1:2:é:Room"],
  ])("of the script %s counts bytes", (script, className, key) => {
    expect(cellKey(script, className)).toBe(key);
  });
});
