// What `cellkit router check` finds out, against dispatchers that answer over real connections.
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPosixLedger } from "@cellkit/ledger";
import { dispatcher, type ScriptedDispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { formatFingerprint } from "../../src/fingerprint/fingerprint.ts";
import { openNotes } from "../../src/fingerprint/open-notes.ts";
import { TokenGenerations } from "../../src/fingerprint/token-generation.ts";
import { type CheckResult, checkRouter, lookAtBackend, routerOptions } from "../../src/index.ts";
import { startBalancer } from "../support/balancer.ts";
import { DnsServer } from "../support/dns-server.ts";
import { tokens, writeTokens } from "../support/router.ts";

let directory: string;
let files: ReturnType<typeof writeTokens>;
let nodes: ScriptedDispatcher[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cellkit-router-check-"));
  files = writeTokens(directory);
  nodes = await Promise.all(
    ["node-a", "node-b"].map((name) => dispatcher({ token: tokens.backend, node: { name } })),
  );
});
afterEach(async () => {
  await Promise.all(nodes.map((each) => each.close()));
  await rm(directory, { recursive: true });
});

const origins = () => nodes.map(({ origin }) => origin);
const place = () => join(directory, "ledger");

async function check(changes: Record<string, unknown> = {}): Promise<Map<string, CheckResult>> {
  const config = routerOptions.parse({
    backends: origins().join(","),
    clientTokenFile: files.client,
    tokenFile: files.backend,
    capabilityTokenFile: files.capability,
    ledger: place(),
    ...changes,
  });
  const found = await checkRouter(config, { roundCount: 3 });
  return new Map(found.map((result) => [result.name, result]));
}

async function makeLedger(owners: readonly string[], capacity = 100_000): Promise<void> {
  await using ledger = await openPosixLedger({ directory: place(), capacity });
  for (const [index, owner] of owners.entries()) await ledger.claim(`run-${index}`, "{}", async () => owner);
}

describe("a plane that is as it must be", () => {
  it("passes every check that can be made, and nothing is submitted or written", async () => {
    await makeLedger(origins());
    const before = await readdir(place());
    const found = await check();
    expect([...found.values()].map(({ verdict, name }) => `${name} ${verdict}`)).toEqual([
      "tokens passed",
      "list passed",
      "ledger passed",
      "records passed",
      "replicas not-tested",
      ...[...found.keys()].slice(5).map((name) => `${name} passed`),
    ]);
    expect(found.get(`backend ${nodes[0]?.origin}`)?.detail).toMatch(
      /node-a \(1024 cells.*same each of 3 times/,
    );
    expect(await readdir(place())).toEqual(before);
    for (const { calls } of nodes) {
      expect(calls.map(({ call }) => call)).toEqual(Array(3).fill(["health", "capabilities"]).flat());
    }
  });
});

describe("tokens", () => {
  it("that two roles share are refused, and no dispatcher is shown one", async () => {
    await writeFile(files.client, tokens.backend);
    const found = await check();
    expect(found.get("tokens")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/client token equals the backend/),
    });
    expect(found.get("backends")?.verdict).toBe("not-tested");
    expect(nodes.flatMap(({ calls }) => calls)).toEqual([]);
    expect(JSON.stringify([...found.values()])).not.toContain(tokens.backend);
  });

  it("of discovery that cannot be used are a warning where they stop discovery alone", async () => {
    await writeFile(files.capability, "short");
    expect((await check()).get("tokens")?.verdict).toBe("failed");
    expect((await check({ isolateDiscovery: true })).get("tokens")?.verdict).toBe("warning");
  });
});

describe("the ledger", () => {
  it("is not made by a check", async () => {
    expect((await check()).get("ledger")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/no owner of any run/),
    });
    expect((await check({ requireExistingLedger: true })).get("ledger")?.verdict).toBe("failed");
    expect(await readdir(directory)).not.toContain("ledger");
  });

  it("that could not be made is refused", async () => {
    await writeFile(join(directory, "a-file"), "");
    expect((await check({ ledger: join(directory, "a-file", "ledger") })).get("ledger")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/this user cannot make it: ENOTDIR/),
    });
  });

  it("of the original needs no mark, unless one is asked for", async () => {
    await makeLedger(origins());
    await rm(join(place(), "cellkit.ledger"));
    expect((await check()).get("ledger")).toMatchObject({
      verdict: "passed",
      detail: expect.stringMatching(/no mark of its creation, as the original's/),
    });
    expect(await readdir(place())).not.toContain("cellkit.ledger");
    expect((await check({ requireExistingLedger: true })).get("ledger")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/cellkit ledger adopt/),
    });
  });

  it("with owners that are not in the list is told of", async () => {
    await makeLedger([...origins(), "http://gone:8787", "http://gone:8787"]);
    const { verdict, detail } = (await check()).get("records") ?? {};
    expect([verdict, detail]).toEqual([
      "warning",
      expect.stringMatching(/4 records.*2 belong to http:\/\/gone:8787/),
    ]);
  });

  it("with one record is told of in the singular", async () => {
    await makeLedger(origins().slice(0, 1));
    expect((await check()).get("records")?.detail).toMatch(/^1 record of at most /);
  });

  it("that is full is refused", async () => {
    await makeLedger(origins(), 2);
    expect((await check({ ledgerCapacity: 2 })).get("records")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/2 records of at most 2: new ids are refused/),
    });
  });
});

describe("replicas", () => {
  const note = async (replica: string, list: readonly string[]) => {
    const backends = `sha256:${createHash("sha256").update(JSON.stringify(list)).digest("hex")}`;
    const text = formatFingerprint({ version: 1, replica, backends });
    await (await openNotes(place(), {})).write(replica, text);
  };

  it("that have a discovery token which this configuration lacks, or the other way round, are told of as that", async () => {
    await makeLedger(origins());
    const ledger = await openPosixLedger({ directory: place() });
    const generations = new TokenGenerations(ledger.ledgerId);
    await ledger.close();
    const list = ["round-robin", "", ...origins()];
    const backends = `sha256:${createHash("sha256").update(JSON.stringify(list)).digest("hex")}`;
    const noteOf = async (capability: readonly string[]) => {
      const its = {
        client: await generations.of("client", [Buffer.from(tokens.client)]),
        backend: await generations.of("backend", [Buffer.from(tokens.backend)]),
        capability: await generations.of(
          "capability",
          capability.map((text) => Buffer.from(text)),
        ),
      };
      const text = formatFingerprint({ version: 1, replica: "one", backends, tokens: its });
      await (await openNotes(place(), {})).write("one", text);
    };
    const told = async (changes = {}) => (await check(changes)).get("replicas")?.detail;
    await noteOf([tokens.capability]);
    expect(await told({ capabilityTokenFile: undefined })).toMatch(
      /^one has a capability token, and this configuration has none, unless/,
    );
    await noteOf([]);
    expect(await told()).toMatch(/^one has no capability token, and this configuration has one, unless/);
    await noteOf(["another-capability-token-of-this-plane"]);
    expect(await told()).toMatch(/^one has another capability token, unless/);
  });

  it("that have the same list pass, and one that has another order is named", async () => {
    await makeLedger(origins());
    await note("one", ["round-robin", "", ...origins()]);
    expect((await check()).get("replicas")).toMatchObject({
      verdict: "passed",
      detail: expect.stringMatching(/^1 have/),
    });
    await note("two", ["round-robin", "", ...origins().reverse()]);
    const { verdict, detail } = (await check()).get("replicas") ?? {};
    expect([verdict, detail]).toEqual([
      "failed",
      expect.stringMatching(/^two has another list of dispatchers, unless/),
    ]);
  });
});

describe("replicas that are gone", () => {
  it("are a warning with their date where the store has no clock to ask", async () => {
    await makeLedger(origins());
    const notes = await openNotes(place(), {});
    const backends = `sha256:${"ab".repeat(32)}`;
    await notes.write("old", formatFingerprint({ version: 1, replica: "old", backends }));
    const when = new Date("2026-01-02T03:04:05.000Z");
    await utimes(join(place(), "cellkit-router", "cellkit-router-old.fingerprint"), when, when);
    expect((await check()).get("replicas")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/^old has another list of dispatchers; .*2026-01-02T03:04:05\.000Z/),
    });
  });
});

describe("backends", () => {
  it("behind which different nodes answer are refused, though each connection is answered well", async () => {
    await using balancer = await startBalancer(origins());
    const found = await check({ backends: balancer.origin });
    expect(found.get(`backend ${balancer.origin}`)).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(
        /different nodes answer behind it: node-[ab].*; node-[ab].*A balancer is no owner/,
      ),
    });
  });

  it("that are one node under two origins are told of", async () => {
    await using balancer = await startBalancer([nodes[0]?.origin ?? ""]);
    const found = await check({ backends: `${nodes[0]?.origin},${balancer.origin}` });
    expect(found.get("node names")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/^node-a answers at .* and /),
    });
  });

  it("that do not take the token, do not answer, or take no work are told of, each as that", async () => {
    await using other = await dispatcher({
      token: "another-token-of-24-characters",
      node: { name: "node-c" },
    });
    await nodes[0]?.kill();
    nodes[1]?.change({ kvm: false });
    const found = await check({ backends: [...origins(), other.origin].join(",") });
    expect(found.get(`backend ${nodes[0]?.origin}`)).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/1 of 1 times/),
    });
    expect(found.get(`backend ${nodes[1]?.origin}`)).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/no new work/),
    });
    expect(found.get(`backend ${other.origin}`)).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/refuses the backend/),
    });
  });

  it("that a name has no addresses for are refused", async () => {
    const found = await check({ backends: undefined, backendsSrv: "no-such-name.invalid" });
    expect(found.get("list")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/no-such-name\.invalid is not found/),
    });
  });

  it.runIf(inject("size") === "long")(
    "whose name is not looked up in time are told of, and not taken for the whole list",
    async () => {
      await using dns = await DnsServer.open();
      dns.state = { kind: "silent" };
      const found = await check({ backendsSrv: "cells", dnsServer: dns.address });
      expect(found.get("list")).toMatchObject({
        verdict: "failed",
        detail: expect.stringMatching(/^2 dispatchers; cells is not found/),
      });
    },
  );

  it("are asked at one address of their name, where several are to be asked", async () => {
    const port = new URL(nodes[0]?.origin ?? "").port;
    const signal = new AbortController().signal;
    const look = await lookAtBackend(`http://name.invalid:${port}`, Buffer.from(tokens.backend), {
      signal,
      address: "127.0.0.1",
    });
    expect(look).toMatchObject({ healthy: true, report: { status: 200 } });
    expect(new Set(look.nodes.map(({ node_name }) => node_name))).toEqual(new Set(["node-a"]));
  });
});
