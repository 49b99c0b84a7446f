import { expect, inject, it } from "vitest";
import { resolveAt } from "../src/resolve-names.ts";
import { DnsServer } from "./support/dns-server.ts";

async function asked(server: DnsServer) {
  const [host = "", port] = server.address.split(":");
  return resolveAt({ host, port: Number(port) })("plane.test");
}

it("a name has all its addresses, of both kinds", async () => {
  await using server = await DnsServer.open();
  server.state = { kind: "addresses", addresses: ["127.0.0.3", "::1", "127.0.0.2"] };
  expect([...(await asked(server))].sort()).toEqual(["127.0.0.2", "127.0.0.3", "::1"]);
});

it.each([[["127.0.0.3"]], [["::1"]]])(
  "a name may have addresses of one kind alone: %s",
  async (addresses) => {
    await using server = await DnsServer.open();
    server.state = { kind: "addresses", addresses };
    expect(await asked(server)).toEqual(addresses);
  },
);

it.each([
  [{ kind: "gone" }, "ENOTFOUND"],
  [{ kind: "failing" }, "ESERVFAIL"],
  [{ kind: "half", addresses: ["127.0.0.2"] }, "ESERVFAIL"],
  [{ kind: "addresses", addresses: [] }, "ENODATA"],
] as const)("%s is a failure, so that the last answer stays", async (state, code) => {
  await using server = await DnsServer.open();
  server.state = state;
  await expect(asked(server)).rejects.toMatchObject({ code });
});

it.runIf(inject("size") === "long")("a server that says nothing is given up after two tries", async () => {
  await using server = await DnsServer.open();
  server.state = { kind: "silent" };
  await expect(asked(server)).rejects.toMatchObject({ code: "ETIMEOUT" });
  expect(server.questionCount).toBe(4);
});
