import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Resolver } from "node:dns/promises";
import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { type DnsEndpointsOptions, dnsEndpoints } from "../src/dns-endpoints.ts";
import { type Endpoint, resolveEndpoints, staticEndpoints } from "../src/endpoints.ts";
import { Fleet } from "../src/fleet.ts";
import { ask, authority, failure, fleetOf } from "./support/fleet.ts";
import { startNode, until } from "./support/node-server.ts";

type Answer = readonly string[] | Error;

/** A resolver that gives the scripted answers in turn, the last one for ever. */
function scripted(four: readonly Answer[], six: readonly Answer[] = [noData()], ttl = 0) {
  const asked: string[] = [];
  const take = (family: 4 | 6, answers: readonly Answer[]) => async (name: string) => {
    const turn = asked.filter((entry) => entry.startsWith(`${family} `)).length;
    asked.push(`${family} ${name}`);
    const answer = answers[Math.min(turn, answers.length - 1)] ?? [];
    if (answer instanceof Error) throw answer;
    return answer.map((address) => ({ address, ttl }));
  };
  return { asked, resolver: { resolve4: take(4, four), resolve6: take(6, six) } as unknown as Resolver };
}

function noData(code = "ENODATA"): Error {
  return Object.assign(new Error(`query ${code}`), { code });
}

/** The first `count` sets that a name yields. */
async function sets(count: number, options: Omit<DnsEndpointsOptions, "port">): Promise<string[][]> {
  const seen: string[][] = [];
  for await (const set of dnsEndpoints("app.demo.svc.cluster.local.", {
    port: 8080,
    minTtlMs: 1,
    ...options,
  })) {
    seen.push(set.map(({ url }) => String(url)));
    if (seen.length === count) break;
  }
  return seen;
}

const stale: unknown[] = [];
const listener = (message: unknown): void => {
  if ((message as { stale: boolean }).stale) stale.push(message);
};
afterEach(() => {
  unsubscribe("fleet:endpoints", listener);
  stale.length = 0;
});

describe("endpoints", () => {
  it("D01 the same address twice is one node", async () => {
    const url = "http://10.0.0.1:8080";
    await using fleet = new Fleet({
      authority,
      endpoints: [url, new URL(url), { url, weight: 2 }, "http://10.0.0.2"],
    });
    expect(fleet.nodes.map(({ id, weight }) => [id, weight])).toEqual([
      ["10.0.0.1:8080", 1],
      ["10.0.0.2:80", 1],
    ]);
  });

  it.each([
    ["an empty list", []],
    ["another protocol", ["ftp://10.0.0.1"]],
    ["no URL", ["10.0.0.1:8080"]],
    ["a weight of 0", [{ url: "http://10.0.0.1", weight: 0 }]],
  ])("refuses %s", (_name, list) => {
    expect(() => staticEndpoints(list)).toThrow(expect.objectContaining({ code: "CELLKIT_CLIENT_CONFIG" }));
  });

  it("D08 an IPv6 literal keeps its brackets, and Host is the authority", async () => {
    expect(resolveEndpoints([{ url: "http://[::1]:8080" }])).toMatchObject([{ id: "[::1]:8080" }]);
    const server = createServer((request, response) => response.end(request.headers.host));
    const listening = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(0, "::1", () => resolve(true));
    });
    const address = server.address();
    if (listening && typeof address === "object" && address !== null) {
      await using fleet = fleetOf([{ url: `http://[::1]:${address.port}` }]);
      expect((await ask(fleet)).text).toBe("app.internal");
    }
    server.closeAllConnections();
    server.close();
  });
});

describe("a source of one's own", () => {
  it("D05 a new address gets no traffic before its health says 200", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    b.healthStatus = 503;
    const more = Promise.withResolvers<void>();
    const endpoints = (async function* (): AsyncGenerator<Endpoint[]> {
      yield [{ url: a.url }];
      await more.promise;
      yield [{ url: a.url }, { url: b.url }];
      await new Promise(() => undefined);
    })();
    await using fleet = new Fleet({ authority, endpoints });
    await fleet.ready();
    more.resolve();
    await until(() => fleet.nodes.length === 2, "the second node");
    for (let call = 0; call < 20; call += 1) await ask(fleet);
    expect([a.seen.length, b.seen.length]).toEqual([20, 0]);
    await until(() => b.probeCount >= 1, "the probe");
    expect(fleet.nodes[1]?.state).toBe("new");
    b.healthStatus = 200;
    await until(() => fleet.nodes[1]?.state === "admitted", "the 200");
  });

  it("D06 at a cold start every address is used", async () => {
    await using a = await startNode("a");
    a.healthStatus = 503;
    await using fleet = fleetOf([a]);
    expect((await ask(fleet)).text).toBe("a");
    expect(a.probeCount).toBe(0);
  });

  it("D10 that throws keeps its last set and is started again", async () => {
    await using a = await startNode("a");
    subscribe("fleet:endpoints", listener);
    let starts = 0;
    const endpoints = {
      async *[Symbol.asyncIterator](): AsyncGenerator<Endpoint[]> {
        starts += 1;
        if (starts === 1) yield [{ url: a.url }];
        throw new RangeError("no watch");
      },
    };
    await using fleet = new Fleet({ authority, endpoints });
    await until(() => starts >= 3, "the restarts");
    expect(fleet.nodes).toHaveLength(1);
    expect((await ask(fleet)).text).toBe("a");
    expect(stale.length).toBeGreaterThanOrEqual(2);
  });

  it("D11 that drops a node lets its calls finish", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    let answer: (() => void) | undefined;
    a.respond = (_seen, response) => {
      answer = () => void response.end("late");
    };
    const next = Promise.withResolvers<void>();
    const endpoints = (async function* (): AsyncGenerator<Endpoint[]> {
      yield [{ url: a.url }];
      await next.promise;
      yield [{ url: b.url }];
      await new Promise(() => undefined);
    })();
    await using fleet = new Fleet({ authority, endpoints });
    const asking = ask(fleet);
    await until(() => answer !== undefined, "the request");
    next.resolve();
    await until(() => fleet.nodes.every(({ id }) => id === `127.0.0.1:${b.port}`), "the new set");
    answer?.();
    expect((await asking).text).toBe("late");
    expect((await ask(fleet)).text).toBe("b");
    await until(() => a.sockets.size === 0, "A's sockets");
  });

  it("that names nothing ends a call with NoEndpointError after waitForNodeMs", async () => {
    const endpoints = (async function* (): AsyncGenerator<Endpoint[]> {
      await new Promise(() => undefined);
    })();
    const fleet = new Fleet({ authority, endpoints, retry: { waitForNodeMs: 50 } });
    expect(await failure(ask(fleet))).toMatchObject({ code: "CELLKIT_CLIENT_NO_ENDPOINT" });
    await failure(fleet.ready(AbortSignal.timeout(20)));
    await fleet.close();
  });
});

describe("dnsEndpoints", () => {
  it("D02 asks again by TTL, within bounds", async () => {
    const { asked, resolver } = scripted([["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"]], [noData()], 3_600);
    const startedMs = performance.now();
    await sets(2, { resolver, maxTtlMs: 50 });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(90);
    expect(asked).toEqual(Array(3).fill("4 app.demo.svc.cluster.local"));
  });

  it.each([
    ["SERVFAIL", noData("ESERVFAIL")],
    ["a timeout", noData("ETIMEOUT")],
    ["NXDOMAIN", noData("ENOTFOUND")],
    ["an empty answer", []],
  ])("D03 keeps the last set on %s, tells that it is stale, and asks again", async (_name, answer) => {
    subscribe("fleet:endpoints", listener);
    const { resolver } = scripted([["10.0.0.1"], answer, answer, ["10.0.0.1", "10.0.0.2"]]);
    expect(await sets(2, { resolver })).toEqual([
      ["http://10.0.0.1:8080"],
      ["http://10.0.0.1:8080", "http://10.0.0.2:8080"],
    ]);
    expect(stale).toHaveLength(2);
  });

  it("D04 keeps an address that was missing once, and drops it after two in a row", async () => {
    const both = ["10.0.0.1", "10.0.0.2"];
    const { asked, resolver } = scripted([both, ["10.0.0.1"], both, ["10.0.0.1"], ["10.0.0.1"]]);
    expect(await sets(2, { resolver })).toEqual([
      ["http://10.0.0.1:8080", "http://10.0.0.2:8080"],
      ["http://10.0.0.1:8080"],
    ]);
    expect(asked).toHaveLength(5);
  });

  it("D07 takes one family: n nodes for n pods", async () => {
    const { resolver } = scripted([["10.0.0.1"]], [["fd00::1"]]);
    expect(await sets(1, { resolver })).toEqual([["http://10.0.0.1:8080"]]);
    const six = scripted([noData()], [["fd00::1"]]);
    expect(await sets(1, { resolver: six.resolver })).toEqual([["http://[fd00::1]:8080"]]);
    const failing = scripted([noData("ESERVFAIL"), ["10.0.0.1"]], [["fd00::1"]]);
    expect(await sets(1, { resolver: failing.resolver })).toEqual([["http://10.0.0.1:8080"]]);
  });

  it.each(["app", "app.demo", ""])("D12 refuses the short name %o and says what to write", (name) => {
    expect(() => dnsEndpoints(name, { port: 8080 })).toThrow(
      expect.objectContaining({ code: "CELLKIT_CLIENT_CONFIG" }),
    );
    if (name !== "")
      expect(() => dnsEndpoints(name, { port: 8080 })).toThrow(/search domains.*svc\.cluster\.local\./s);
  });

  it("asks the system with useLookup, and ends when its fleet closes", async () => {
    await using a = await startNode("a");
    const fleet = new Fleet({
      authority,
      endpoints: dnsEndpoints("localhost", { port: a.port, useLookup: true, family: 4 }),
    });
    expect((await ask(fleet)).text).toBe("a");
    await fleet.close();
  });
});
