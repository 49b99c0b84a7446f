// One engine from start to stop, with a real workerd and a real bucket server.
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openBucket } from "@cellkit/bucket";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { processFate } from "../src/process-identity.ts";
import { findWorkerd } from "../src/workerd-binary.ts";
import { counted } from "./support/counts.ts";
import { startFleet, type TestFleet } from "./support/fleet.ts";
import { ask, askJson } from "./support/http.ts";
import { rooms } from "./support/workers.ts";

const hello = `export default { fetch: () => new Response("hello") };`;
let fleet: TestFleet;

beforeEach(async () => {
  fleet = await startFleet();
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
});

describe("start", () => {
  it("serves the deployment that is there", async () => {
    await fleet.deploy({ source: rooms, classes: ["Room"] });
    const { engine, advertise } = await fleet.node();
    expect(engine.state).toBe("ready");
    expect(engine.healthy()).toBe(true);
    expect(engine.deployment?.scriptName).toBe("chat");
    expect(await askJson(engine, "/a/write")).toMatchObject({ count: 1 });
    const snapshot = await counted(engine);
    // The id of `a` in the namespace cells:v1:4:chat:Room, as the original celld derives it.
    expect(snapshot.residents).toEqual([
      "Room:ab74c0d8e0716d62ce8b602f92e507eff1a3cfa232fda7a88beeb1978b258b8b",
    ]);
    expect(snapshot).toMatchObject({ occupied: 1, requests: 1, requestsFailed: 0, restartCount: 0 });
    expect(snapshot.rssBytes).toBeGreaterThan(10_000_000);
    const lease = await fleet.bucket.get(snapshot.membership ?? "");
    expect(JSON.parse(Buffer.from(lease?.body ?? []).toString())).toMatchObject({ address: advertise });
  });

  it("is healthy and idle without a deployment, and serves the first one that comes", async () => {
    const { engine } = await fleet.node();
    expect([engine.state, engine.healthy(), engine.publicSocket]).toEqual(["ready", true, undefined]);
    await fleet.deploy({ source: hello });
    await until("the engine serves", () => engine.publicSocket);
    expect((await ask(engine, "/")).text).toBe("hello");
  });

  it("shows the text of a Worker that throws at load, and leaves no process", async () => {
    await fleet.deploy({ source: `throw new RangeError("no such table: users");` });
    const { engine, directory } = await fleet.node({ start: false });
    await expect(engine.start()).rejects.toMatchObject({
      code: "CELLKIT_ENGINE_WORKER_LOAD",
      detail: expect.stringContaining("RangeError: no such table: users"),
    });
    expect(engine.state).toBe("stopped");
    expect(await readdir(directory)).not.toContain("engine.json");
  });

  it.each([
    ["a syntax error", "export default {", "SyntaxError"],
    ["a class that is bound but not exported", "export default {}", "Room"],
    ["an import that is not there", `import "./missing.js"; export default {}`, "missing.js"],
  ])("names %s as the Worker's fault", async (_, source, text) => {
    await fleet.deploy({ source, classes: ["Room"] });
    const { engine } = await fleet.node({ start: false });
    const error = await engine.start().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "CELLKIT_ENGINE_WORKER_LOAD",
      detail: expect.stringContaining(text),
    });
  });

  it("waits for another deployment when the first one does not load", async () => {
    const { engine } = await fleet.node();
    await fleet.deploy({ source: `throw new Error("not this one");` });
    await until("the engine notices", () => engine.state === "failed");
    expect(engine.healthy()).toBe(false);
    await fleet.deploy({ source: hello });
    await until("the engine serves", () => engine.publicSocket);
    expect([engine.state, engine.healthy()]).toEqual(["ready", true]);
  });

  it("keeps key and credentials out of command lines and out of reach of others", async () => {
    await fleet.deploy({ source: hello });
    const { engine, directory } = await fleet.node();
    const { pid } = await engine.snapshot();
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8");
    const environment = await readFile(`/proc/${pid}/environ`, "utf8");
    const stored = await fleet.bucket.get("fleet/cluster-auth.json");
    const { key } = JSON.parse(Buffer.from(stored?.body ?? []).toString());
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    for (const secret of [key, fleet.credentials.secretAccessKey]) {
      expect(commandLine + environment).not.toContain(secret);
    }
    expect((await stat(join(directory, "workerd"))).mode & 0o777).toBe(0o700);
    for (const name of await readdir(join(directory, "workerd"))) {
      expect((await stat(join(directory, "workerd", name))).mode & 0o777).toBe(0o600);
    }
  });

  it("makes the cluster key once, however many nodes start at the same time", async () => {
    await fleet.deploy({ source: rooms, classes: ["Room"] });
    const nodes = await Promise.all([fleet.node(), fleet.node()]);
    await askJson(nodes[0].engine, "/a/write");
    // Only nodes with the same key can call each other.
    expect(await askJson(nodes[1].engine, "/a/write")).toMatchObject({ count: 2 });
  });

  it("gives vars, JSON vars and secrets to the Worker, whatever characters they have", async () => {
    const vars = {
      QUOTES: `"'\\ \n\r\t\0 é 🦊 \u2028 $\{x} */`,
      JSON: { deep: ['"', null, 1.5] },
      BOTH: "var",
    };
    await fleet.deploy({ source: "export default { fetch: (_, env) => Response.json(env) };", vars });
    const secretsFile = join(fleet.root, "secrets");
    await writeFile(secretsFile, JSON.stringify({ TOKEN: 'a"b\\', BOTH: "secret" }), { mode: 0o600 });
    const varsFile = join(fleet.root, "vars.env");
    await writeFile(varsFile, "JSON=text\nBOTH=node\nREGION='eu 1'\n");
    const { engine } = await fleet.node({ secretsFile, varsFile });
    expect(await askJson(engine, "/")).toEqual({
      ...vars,
      JSON: "text",
      REGION: "eu 1",
      TOKEN: 'a"b\\',
      BOTH: "secret",
    });
  });

  it("gives any text to the Worker unchanged", async () => {
    // A deployment has at most 1,000 bindings; more text in each says as much as more of them.
    const [numRuns, maxLength] = inject("size") === "long" ? [900, 250] : [300, 40];
    const texts = fc.sample(fc.string({ unit: "binary", maxLength }), { seed: inject("seed"), numRuns });
    const vars = Object.fromEntries(texts.map((text, index) => [`V${index}`, text]));
    await fleet.deploy({ source: "export default { fetch: (_, env) => Response.json(env) };", vars });
    const { engine } = await fleet.node();
    expect(await askJson(engine, "/")).toEqual(vars);
  });

  it("loads wasm, text and data modules", async () => {
    const wasm = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
    await fleet.deploy({
      source: `
        import module from "./empty.wasm"; import text from "./lib/page.html"; import data from "./key.bin";
        export default { fetch: () => Response.json([module instanceof WebAssembly.Module, text, new Uint8Array(data)[1]]) };`,
      modules: [
        { name: "empty.wasm", kind: "wasm", bytes: wasm },
        { name: "lib/page.html", kind: "text", bytes: new TextEncoder().encode("<p>é") },
        { name: "key.bin", kind: "data", bytes: Uint8Array.of(1, 255) },
      ],
    });
    const { engine } = await fleet.node();
    expect(await askJson(engine, "/")).toEqual([true, "<p>é", 255]);
  });

  it("can be done once only", async () => {
    const { engine } = await fleet.node();
    await expect(engine.start()).rejects.toMatchObject({ code: "CELLKIT_ENGINE_STATE" });
  });

  it("gives up when its signal is aborted", async () => {
    const { engine } = await fleet.node({ start: false });
    await expect(engine.start({ signal: AbortSignal.abort(new RangeError("enough")) })).rejects.toThrow(
      "enough",
    );
    expect(engine.state).toBe("stopped");
  });
});

describe("a start that is broken off", () => {
  it("ends the workerd that was being started, and says why", async () => {
    // It never serves.
    await fleet.deploy({ source: "while (true);" });
    const { engine, directory } = await fleet.node({ start: false });
    const stop = new AbortController();
    const started = engine.start({ signal: stop.signal }).catch((error: unknown) => error);
    const child = await until("workerd runs", async () => {
      const text = await readFile(join(directory, "engine.json"), "utf8").catch(() => undefined);
      return text === undefined ? undefined : JSON.parse(text).child;
    });
    stop.abort(new RangeError("enough"));
    expect(await started).toEqual(new RangeError("enough"));
    expect(await processFate(child)).toBe("gone");
  });

  it("does not stop the engine when its signal is aborted later", async () => {
    await fleet.deploy({ source: hello });
    const { engine } = await fleet.node({ start: false });
    const stop = new AbortController();
    await engine.start({ signal: stop.signal });
    stop.abort();
    expect((await ask(engine, "/")).text).toBe("hello");
    expect(engine.healthy()).toBe(true);
  });
});

describe("storage", () => {
  it.each(["cells/Room:00/own.json", "nodes/node_1.json"])(
    "of an original celld (%s) is refused",
    async (key) => {
      await fleet.bucket.put(key, "{}");
      const { engine } = await fleet.node({ start: false });
      await expect(engine.start()).rejects.toMatchObject({ code: "CELLKIT_ENGINE_STORAGE" });
    },
  );

  it("of another engine or format is refused by name", async () => {
    await fleet.bucket.put("cellkit/format.json", '{"engine":"workerd-cluster","format":2}');
    const { engine } = await fleet.node({ start: false });
    await expect(engine.start()).rejects.toThrow(/workerd-cluster, format 2.*workerd-cluster, format 1/);
  });

  it("stays ours when the node's own records are there", async () => {
    await fleet.node();
    await fleet.bucket.put("nodes/node_1.json", "{}");
    await expect(fleet.node()).resolves.toBeDefined();
  });
});

describe("bad input", () => {
  it("refuses a secrets file that others can read, is missing or is not one", async () => {
    const path = join(fleet.root, "secrets");
    const start = async () => (await fleet.node({ start: false, secretsFile: path })).engine.start();
    await expect(start()).rejects.toMatchObject({ code: "CELLKIT_ENGINE_SECRETS_FILE" });
    await writeFile(path, "A=s3cret", { mode: 0o644 });
    await expect(start()).rejects.toThrow(/chmod 600/);
    await rm(path);
    await writeFile(path, "s3cret", { mode: 0o600 });
    await expect(start()).rejects.toThrow(/line 1 is not KEY=VALUE$/);
  });

  it.each([
    ["a file:// bucket", { bucketUrl: "file:///tmp/x" }, "cellkit bucket serve"],
    ["an advertised port of 0", { advertise: "10.0.0.1:0" }, "host:port"],
    ["a time that is none", { stopTimeoutMs: 1.5 }, "stopTimeoutMs is 1.5"],
    ["a divisor of 0", { unsafeTimeDivisor: 0 }, "unsafeTimeDivisor"],
  ])("refuses %s", async (_, options, text) => {
    await expect(fleet.node({ start: false, ...options })).rejects.toThrow(text);
  });

  it("refuses a data directory that cannot be made", async () => {
    await writeFile(join(fleet.root, "file"), "");
    const { engine } = await fleet.node({ start: false, directory: join(fleet.root, "file", "data") });
    await expect(engine.start()).rejects.toMatchObject({ code: "CELLKIT_ENGINE_DATA_DIRECTORY" });
  });

  it("passes on that the bucket cannot be reached, with nothing left behind", async () => {
    const { endpoint } = fleet;
    await using gone = openBucket(fleet.bucketUrl, { ...fleet, endpoint: "http://127.0.0.1:1" });
    const { engine, directory } = await fleet.node({ start: false, bucket: gone, endpoint });
    await expect(engine.start()).rejects.toMatchObject({ code: "CELLKIT_BUCKET_UNREACHABLE" });
    expect(await readdir(directory)).toEqual(["cells", "lock"]);
  });

  it("refuses a data directory that a running node uses", async () => {
    await fleet.deploy({ source: hello });
    const { engine, directory } = await fleet.node();
    const second = await fleet.node({ start: false, directory });
    await expect(second.engine.start()).rejects.toThrow(/in use by process/);
    expect((await ask(engine, "/")).text).toBe("hello");
  });
});

describe("findWorkerd", () => {
  /** A folder with packages of the given versions in its node_modules. */
  async function packages(versions: Record<string, string>): Promise<string> {
    for (const [name, version] of Object.entries(versions)) {
      const folder = join(fleet.root, "node_modules", name);
      await mkdir(join(folder, "bin"), { recursive: true });
      await writeFile(join(folder, "package.json"), JSON.stringify({ name, version }));
      await writeFile(join(folder, "bin", "workerd"), "");
    }
    return join(fleet.root, "index.js");
  }
  const binaryPackage =
    process.arch === "arm64" ? "@cloudflare/workerd-linux-arm64" : "@cloudflare/workerd-linux-64";

  it("finds the pinned one", async () => {
    expect(await findWorkerd()).toMatch(/bin\/workerd$/);
  });

  it("says what to install when there is none that can be read", async () => {
    const from = await packages({ workerd: "1.20261117.1" });
    await writeFile(join(fleet.root, "node_modules", "workerd", "package.json"), "{}");
    await expect(findWorkerd(from)).rejects.toMatchObject({
      code: "CELLKIT_ENGINE_WORKERD_MISSING",
      message: expect.stringContaining("install workerd@1."),
    });
  });

  it("refuses another version, of the package or of its binary", async () => {
    const newer = await packages({ workerd: "1.20991231.1" });
    await expect(findWorkerd(newer)).rejects.toMatchObject({
      code: "CELLKIT_ENGINE_WORKERD_VERSION",
      found: "1.20991231.1",
    });
    const mixed = await packages({ workerd: "1.20261117.1", [binaryPackage]: "1.20991231.1" });
    await expect(findWorkerd(mixed)).rejects.toMatchObject({ code: "CELLKIT_ENGINE_WORKERD_VERSION" });
  });
});

describe("stop", () => {
  it("ends the process, removes its sockets and is the same each time", async () => {
    await fleet.deploy({ source: hello });
    const { engine, directory } = await fleet.node();
    const record = JSON.parse(await readFile(join(directory, "engine.json"), "utf8"));
    const publicSocket = engine.publicSocket ?? "";
    expect(publicSocket).toBe(join(directory, "sockets", "public"));
    await Promise.all([engine.stop(), engine.stop()]);
    await engine[Symbol.asyncDispose]();
    expect(await processFate(record.child)).toBe("gone");
    expect([engine.state, engine.publicSocket, engine.clusterPort, engine.healthy()]).toEqual([
      "stopped",
      undefined,
      undefined,
      false,
    ]);
    await expect(stat(publicSocket)).rejects.toMatchObject({ code: "ENOENT" });
    // Neither keys nor secrets stay behind.
    expect(await readdir(directory)).toEqual(["cells", "lock"]);
  });

  it("before the start leaves nothing to start", async () => {
    const { engine } = await fleet.node({ start: false });
    await engine.stop();
    await expect(engine.start()).rejects.toMatchObject({ code: "CELLKIT_ENGINE_STATE" });
  });
});
