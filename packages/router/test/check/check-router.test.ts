// What `cellkit router check` finds out, against dispatchers that answer over real connections.
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { lookAtBackend } from "../../src/index.ts";
import { startBalancer } from "../support/balancer.ts";
import { CheckedPlane } from "../support/checked-plane.ts";
import { DnsServer } from "../support/dns-server.ts";
import { tokens } from "../support/router.ts";

let plane: CheckedPlane;
beforeEach(async () => {
  plane = await CheckedPlane.open();
});
afterEach(() => plane.close());

describe("a plane that is as it must be", () => {
  it("passes every check that can be made, and nothing is submitted or written", async () => {
    await plane.makeLedger();
    const before = await readdir(plane.place);
    const found = await plane.check();
    expect([...found.values()].map(({ verdict, name }) => `${name} ${verdict}`)).toEqual([
      "tokens passed",
      "list passed",
      "ledger passed",
      "records passed",
      "replicas not-tested",
      ...[...found.keys()].slice(5).map((name) => `${name} passed`),
    ]);
    expect(found.get(`backend ${plane.nodes[0]?.origin}`)?.detail).toMatch(
      /node-a \(1024 cells.*same each of 3 times/,
    );
    expect(await readdir(plane.place)).toEqual(before);
    for (const { calls } of plane.nodes) {
      expect(calls.map(({ call }) => call)).toEqual(Array(3).fill(["health", "capabilities"]).flat());
    }
  });
});

describe("tokens", () => {
  it("that two roles share are refused, and no dispatcher is shown one", async () => {
    await writeFile(plane.files.client, tokens.backend);
    const found = await plane.check();
    expect(found.get("tokens")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/client token equals the backend/),
    });
    expect(found.get("backends")?.verdict).toBe("not-tested");
    expect(plane.nodes.flatMap(({ calls }) => calls)).toEqual([]);
    expect(JSON.stringify([...found.values()])).not.toContain(tokens.backend);
  });

  it("of discovery that cannot be used are a warning where they stop discovery alone", async () => {
    await writeFile(plane.files.capability, "short");
    expect((await plane.check()).get("tokens")?.verdict).toBe("failed");
    expect((await plane.check({ isolateDiscovery: true })).get("tokens")?.verdict).toBe("warning");
  });
});

describe("the ledger", () => {
  it("is not made by a check", async () => {
    expect((await plane.check()).get("ledger")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/no owner of any run/),
    });
    expect((await plane.check({ requireExistingLedger: true })).get("ledger")?.verdict).toBe("failed");
    expect(await readdir(plane.directory)).not.toContain("ledger");
  });

  it("that could not be made is refused", async () => {
    await writeFile(join(plane.directory, "a-file"), "");
    expect(
      (await plane.check({ ledger: join(plane.directory, "a-file", "ledger") })).get("ledger"),
    ).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/this user cannot make it: ENOTDIR/),
    });
  });

  it("of the original needs no mark, unless one is asked for", async () => {
    await plane.makeLedger();
    await rm(join(plane.place, "cellkit.ledger"));
    expect((await plane.check()).get("ledger")).toMatchObject({
      verdict: "passed",
      detail: expect.stringMatching(/no mark of its creation, as the original's/),
    });
    expect(await readdir(plane.place)).not.toContain("cellkit.ledger");
    expect((await plane.check({ requireExistingLedger: true })).get("ledger")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/cellkit ledger adopt/),
    });
  });

  it("with owners that are not in the list is told of", async () => {
    await plane.makeLedger([...plane.origins, "http://gone:8787", "http://gone:8787"]);
    const { verdict, detail } = (await plane.check()).get("records") ?? {};
    expect([verdict, detail]).toEqual([
      "warning",
      expect.stringMatching(/4 records.*2 belong to http:\/\/gone:8787/),
    ]);
  });

  it("with one record is told of in the singular", async () => {
    await plane.makeLedger(plane.origins.slice(0, 1));
    expect((await plane.check()).get("records")?.detail).toMatch(/^1 record of at most /);
  });

  it("that is full is refused", async () => {
    await plane.makeLedger(plane.origins, 2);
    expect((await plane.check({ ledgerCapacity: 2 })).get("records")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/2 records of at most 2: new ids are refused/),
    });
  });
});

describe("backends", () => {
  it("that cannot be reached are told with the system's reason, in the order of the list", async () => {
    const list = ["http://no-such-host.invalid:8787", "http://127.0.0.1:1", ...plane.origins];
    const found = [...(await plane.check({ backends: list.join(",") })).values()].filter(({ name }) =>
      name.startsWith("backend "),
    );
    expect(found.map(({ name }) => name)).toEqual(list.map((origin) => `backend ${origin}`));
    expect(found[0]?.detail).toMatch(/cannot be connected to \((ENOTFOUND|EAI_AGAIN|ETIMEOUT|ESERVFAIL)\)$/);
    expect(found[1]?.detail).toMatch(/cannot be connected to \(ECONNREFUSED\)$/);
  });

  it("behind which different nodes answer are refused, though each connection is answered well", async () => {
    await using balancer = await startBalancer(plane.origins);
    const found = await plane.check({ backends: balancer.origin });
    expect(found.get(`backend ${balancer.origin}`)).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(
        /different nodes answer behind it: node-[ab].*; node-[ab].*A balancer is no owner/,
      ),
    });
  });

  it("that are one node under two origins are told of", async () => {
    await using balancer = await startBalancer([plane.nodes[0]?.origin ?? ""]);
    const found = await plane.check({ backends: `${plane.nodes[0]?.origin},${balancer.origin}` });
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
    await plane.nodes[0]?.kill();
    plane.nodes[1]?.change({ kvm: false });
    const found = await plane.check({ backends: [...plane.origins, other.origin].join(",") });
    expect(found.get(`backend ${plane.nodes[0]?.origin}`)).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/1 of 1 times/),
    });
    expect(found.get(`backend ${plane.nodes[1]?.origin}`)).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/no new work/),
    });
    expect(found.get(`backend ${other.origin}`)).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/refuses the backend/),
    });
  });

  it("that a name has no addresses for are refused", async () => {
    const found = await plane.check({ backends: undefined, backendsSrv: "no-such-name.invalid" });
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
      const found = await plane.check({ backendsSrv: "cells", dnsServer: dns.address });
      expect(found.get("list")).toMatchObject({
        verdict: "failed",
        detail: expect.stringMatching(/^2 dispatchers; cells is not found/),
      });
    },
  );

  it("are asked at one address of their name, where several are to be asked", async () => {
    const port = new URL(plane.nodes[0]?.origin ?? "").port;
    const signal = new AbortController().signal;
    const look = await lookAtBackend(`http://name.invalid:${port}`, Buffer.from(tokens.backend), {
      signal,
      address: "127.0.0.1",
    });
    expect(look).toMatchObject({ healthy: true, report: { status: 200 } });
    expect(new Set(look.nodes.map(({ node_name }) => node_name))).toEqual(new Set(["node-a"]));
  });
});
