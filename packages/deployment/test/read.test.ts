import { describe, expect, it } from "vitest";
import {
  bundleProject,
  InvalidDeploymentError,
  type Manifest,
  publishDeployment,
  readCurrent,
  readDeployment,
  UnsupportedDeploymentError,
} from "../src/index.ts";
import { interruptedBucket } from "./support/interrupted-bucket.ts";
import { smallProject } from "./support/projects.ts";

const version = "0123456789abcdef";
const good = { script_name: "a", version, prefix: `deploy/a/${version}`, rollout: { percent: 100 } };

/** A bucket with a deployment whose manifest was changed. */
async function changed(change: (manifest: Manifest & Record<string, unknown>) => unknown) {
  const bucket = await interruptedBucket();
  const { manifest, ...rest } = await bundleProject(await smallProject());
  await publishDeployment(bucket, { manifest, ...rest });
  const key = `deploy/counter/${manifest.version}/manifest.json`;
  const copy = structuredClone(manifest) as Manifest & Record<string, unknown>;
  await bucket.put(key, JSON.stringify(change(copy) ?? copy));
  return { bucket, key, prefix: `deploy/counter/${manifest.version}` };
}

describe("the fleet's pointer", () => {
  it("is absent before the first deployment", async () => {
    const bucket = await interruptedBucket();
    expect(await readCurrent(bucket)).toBeUndefined();
    expect(await readDeployment(bucket)).toBeUndefined();
  });

  it.each([
    ["as it is written", good],
    ["without a script's name", { ...good, script_name: undefined }],
    ["with a slash after the prefix", { ...good, prefix: `${good.prefix}/` }],
    ["with members that are not known", { ...good, more: 1 }],
  ])("is read %s", async (_, value) => {
    const bucket = await interruptedBucket();
    await bucket.put("deploy/current.json", JSON.stringify(value));
    expect(await readCurrent(bucket)).toEqual({ scriptName: "a", version });
  });

  it.each([
    ["no JSON", "{", /not a pointer/],
    ["bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0x22]), /not a pointer/],
    ["a version that is none", JSON.stringify({ ...good, version: "v1" }), /version: a version has 16/],
    ["a prefix elsewhere", JSON.stringify({ ...good, prefix: "secrets/x" }), /its prefix is secrets\/x/],
    ["a name that climbs", JSON.stringify({ ...good, script_name: "../a" }), /script_name: a script's name/],
    [
      "a prefix that climbs",
      JSON.stringify({ ...good, script_name: undefined, prefix: `deploy/../${version}` }),
      /prefix/,
    ],
    ["more than 4096 bytes", JSON.stringify({ ...good, more: "x".repeat(4096) }), /more than 4096 bytes/],
  ])("is refused with %s", async (_, body, expected) => {
    const bucket = await interruptedBucket();
    await bucket.put("deploy/current.json", body);
    const reading = readCurrent(bucket);
    await expect(reading).rejects.toThrow(InvalidDeploymentError);
    await expect(reading).rejects.toThrow(expected);
  });

  it("is refused with a rollout that is not whole", async () => {
    const bucket = await interruptedBucket();
    await bucket.put("deploy/current.json", JSON.stringify({ ...good, rollout: { percent: 10 } }));
    await expect(readCurrent(bucket)).rejects.toMatchObject({
      code: "CELLKIT_DEPLOYMENT_UNSUPPORTED",
      unsupported: ["a rollout of 10 percent"],
    });
  });
});

describe("a deployment that needs something unknown is refused with all of it", () => {
  it.each([
    ["a schema version", { schema_version: 2 }, ["schema_version 2"]],
    ["features", { required_features: ["wasm-v1", "d1-v1", "x"] }, ["the feature d1-v1", "the feature x"]],
    ["assets", { assets: { index: "x" } }, ["static assets"]],
    ["crons", { crons: ["* * * * *"] }, ["cron triggers"]],
    ["a kind of module", { modules: [{ name: "a", kind: "python" }] }, ["modules of kind python"]],
    [
      "types of bindings",
      { raw_metadata: { bindings: [{ type: "kv_namespace" }, { type: "kv_namespace" }] } },
      ["bindings of type kv_namespace"],
    ],
  ])("%s", async (_, members, unsupported) => {
    const { bucket, key } = await changed((manifest) => ({ ...manifest, ...members }));
    const reading = readDeployment(bucket);
    await expect(reading).rejects.toThrow(UnsupportedDeploymentError);
    await expect(reading).rejects.toMatchObject({ key, unsupported });
  });
});

describe("a deployment that is not whole is refused", () => {
  it.each([
    ["a manifest that is no object", () => [1], /not a manifest/],
    ["a manifest without modules", (m: Manifest) => ({ ...m, modules: [] }), /not a manifest \(modules: /],
    [
      "another version's manifest",
      (m: Manifest) => ({ ...m, version }),
      /it is the manifest of version 0123456789abcdef/,
    ],
    [
      "another script's manifest",
      (m: Manifest) => ({ ...m, script_name: "b" }),
      /it is the manifest of version .* of b/,
    ],
    [
      "a main module that is missing",
      (m: Manifest) => ({ ...m, main_module: "x.js" }),
      /main_module is not one of/,
    ],
    [
      "two modules of one name",
      (m: Manifest) => ({ ...m, modules: [...m.modules, ...m.modules] }),
      /two modules have the same name/,
    ],
    [
      "a module's name that climbs",
      (m: Manifest) => ({ ...m, modules: [...m.modules, { name: "../x.js", bytes: 1, sha256: version }] }),
      /modules\.1\.name: a module's name is a relative path/,
    ],
    [
      "a module of more than 64 MiB",
      (m: Manifest) => ({
        ...m,
        modules: [...m.modules, { name: "x.js", bytes: 2 ** 26 + 1, sha256: version }],
      }),
      /modules\.1\.bytes/,
    ],
    [
      "modules of more than 128 MiB together",
      (m: Manifest) => ({
        ...m,
        modules: [...m.modules, ...["x", "y"].map((name) => ({ name, bytes: 2 ** 26, sha256: version }))],
      }),
      /its modules have \d+ bytes; at most 134217728 are read/,
    ],
    [
      "a manifest of more than 1 MiB",
      (m: Manifest) => ({ ...m, more: "x".repeat(2 ** 20) }),
      /more than 1048576 bytes/,
    ],
  ] satisfies [string, (manifest: Manifest) => unknown, RegExp][])("%s", async (_, change, expected) => {
    const { bucket } = await changed(change);
    const reading = readDeployment(bucket);
    await expect(reading).rejects.toThrow(InvalidDeploymentError);
    await expect(reading).rejects.toThrow(expected);
  });

  it.each([
    ["other bytes", "x", /its SHA-256 begins with|bytes, its manifest says/],
    ["more bytes", "x".repeat(100_000), /it has more than \d+ bytes/],
  ])("a module with %s", async (_, body, expected) => {
    const { bucket, prefix } = await changed(() => undefined);
    await bucket.put(`${prefix}/index.js`, body);
    await expect(readDeployment(bucket)).rejects.toThrow(expected);
  });

  it("a module with one bit changed", async () => {
    const { bucket, prefix } = await changed(() => undefined);
    const body = (await bucket.get(`${prefix}/index.js`))?.body ?? new Uint8Array();
    body[0] = (body[0] ?? 0) ^ 1;
    await bucket.put(`${prefix}/index.js`, body);
    await expect(readDeployment(bucket)).rejects.toThrow(/its SHA-256 begins with/);
  });

  it.each(["manifest.json", "index.js"])("without its %s", async (name) => {
    const { bucket, prefix } = await changed(() => undefined);
    await bucket.delete(`${prefix}/${name}`);
    await expect(readDeployment(bucket)).rejects.toMatchObject({
      key: `${prefix}/${name}`,
      message: expect.stringContaining("the object is missing"),
    });
  });
});

it("an empty module is read as it is", async () => {
  const bucket = await interruptedBucket();
  const directory = await smallProject(
    { no_bundle: true },
    {
      "src/worker.js":
        'export class Counter {} import x from "./empty.txt"; export default { fetch: () => new Response(x) };',
      "src/empty.txt": "",
    },
  );
  await publishDeployment(bucket, await bundleProject(directory));
  const read = await readDeployment(bucket);
  expect(read?.modules.find(({ name }) => name === "empty.txt")?.bytes).toHaveLength(0);
});

it("a deployment is read by its own pointer too", async () => {
  const bucket = await interruptedBucket();
  const one = await bundleProject(await smallProject({ vars: { N: 1 } }));
  await publishDeployment(bucket, one);
  await publishDeployment(bucket, await bundleProject(await smallProject({ vars: { N: 2 } })));
  expect(await readDeployment(bucket, { scriptName: "counter", version: one.version })).toMatchObject({
    version: one.version,
  });
});
