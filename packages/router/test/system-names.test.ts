import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { SystemNames, type SystemNamesOptions } from "../src/backend/system-names.ts";
import { DnsServer } from "./support/dns-server.ts";
import { holdTime } from "./support/held-time.ts";

let directory: string;
let dns: DnsServer;
let asked: string[];
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "router-names-"));
  dns = await DnsServer.open();
  asked = [];
});
afterEach(async () => {
  await dns[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

/** Names of a system with such files, and this DNS server. */
function open(files: { hosts?: string; resolver?: string } = {}, options: SystemNamesOptions = {}) {
  const [hostsPath, resolverPath] = [join(directory, "hosts"), join(directory, "resolv.conf")];
  if (files.hosts !== undefined) writeFileSync(hostsPath, files.hosts);
  if (files.resolver !== undefined) writeFileSync(resolverPath, files.resolver);
  return new SystemNames({
    hostsPath,
    resolverPath,
    servers: [dns.address],
    elsewhere: async (name) => {
      asked.push(name);
      throw Object.assign(new RangeError(name), { code: "ENOTFOUND" });
    },
    ...options,
  });
}

describe("a name", () => {
  it("is looked for in the file of hosts first", async () => {
    dns.state = { kind: "addresses", addresses: ["127.0.0.9"] };
    const names = open({ hosts: "none node-a node-b.test\n::8 node-a\n127.0.0.8 node-a\n" });
    expect(await names.resolve("node-a")).toEqual(["127.0.0.8", "::8"]);
    expect(dns.questionCount).toBe(0);
    expect(await names.resolve("node-b.test")).toEqual(["127.0.0.9"]);
    expect(await names.resolve("localhost")).toEqual(["127.0.0.1"]);
  });

  it("is completed by the search list", async () => {
    dns.state = { kind: "only", name: "d-0.dispatchers.svc.test", addresses: ["127.0.0.9"] };
    const names = open({ resolver: "search celln.svc.test svc.test\noptions ndots:5\n" });
    expect(await names.resolve("d-0.dispatchers")).toEqual(["127.0.0.9"]);
    await expect(names.resolve("d-1.dispatchers")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  it("has addresses of both kinds, and half an answer is enough unless all are asked for", async () => {
    dns.state = { kind: "addresses", addresses: ["127.0.0.9", "::9"] };
    const names = open();
    expect(await names.resolve("a.test", { isWhole: true })).toEqual(["127.0.0.9", "::9"]);
    dns.state = { kind: "half", addresses: ["127.0.0.9"] };
    expect(await names.resolve("a.test")).toEqual(["127.0.0.9"]);
    await expect(names.resolve("a.test", { isWhole: true })).rejects.toMatchObject({ code: "ESERVFAIL" });
    dns.state = { kind: "addresses", addresses: ["::9"] };
    expect(await names.resolve("a.test")).toEqual(["::9"]);
  });

  it("that DNS does not have may be known elsewhere, and one that it is silent about is not looked for there", async () => {
    dns.state = { kind: "gone" };
    const elsewhere = async (name: string) => {
      asked.push(name);
      return ["127.0.0.7"];
    };
    const names = open({}, { elsewhere, totalMs: 60_000 });
    expect(await names.resolve("printer.local")).toEqual(["127.0.0.7"]);
    dns.state = { kind: "silent" };
    const hasty = open({}, { elsewhere, totalMs: 300 });
    await expect(hasty.resolve("silent.test")).rejects.toMatchObject({ code: "ETIMEOUT" });
    dns.state = { kind: "failing" };
    await expect(names.resolve("failing.test")).rejects.toMatchObject({ code: "ESERVFAIL" });
    expect(asked).toEqual(["printer.local"]);
  });

  it("is looked for elsewhere one at a time, and a lookup ends in time whatever holds it up", async () => {
    holdTime();
    dns.state = { kind: "gone" };
    const elsewhere = (name: string) => {
      asked.push(name);
      return new Promise<string[]>(() => undefined);
    };
    const names = open({}, { elsewhere, totalMs: 1_000 });
    const first = Promise.allSettled([names.resolve("a.test")]);
    // Which of two that begin together gets there first is nobody's promise.
    await until("the first is asked for", () => asked.length > 0);
    const second = Promise.allSettled([names.resolve("b.test")]);
    await until("both questions about the second", () => dns.questionCount === 4);
    // One that is answered behind it by the same server, and is looked for elsewhere by itself: the second is there by now, too.
    expect(await open({}, { elsewhere: async () => ["127.0.0.7"] }).resolve("c.test")).toEqual(["127.0.0.7"]);
    expect(asked).toEqual(["a.test"]);
    vi.advanceTimersByTime(1_000);
    const failures = [...(await first), ...(await second)];
    expect(failures).toMatchObject([{ reason: { code: "ETIMEOUT" } }, { reason: { code: "ETIMEOUT" } }]);
    expect(asked).toEqual(["a.test"]);
  });

  it("is given up at once when nobody waits any more", async () => {
    dns.state = { kind: "silent" };
    const names = open({}, { totalMs: 60_000 });
    const finding = names.resolve("silent.test");
    const given = expect(finding).rejects.toMatchObject({ code: "ECANCELLED" });
    await until("a question", () => dns.questionCount > 0);
    names.close();
    // One whose time is over fails as that.
    await given;
  });
});
