import { expect, test } from "vitest";
import { dialTunnel } from "../src/dial-tunnel.ts";
import { testKey } from "./support/records.ts";

test.each([
  ["127.0.0.1", 65_536],
  ["127.0.0.1", -1],
  ["a\u0000b", 80],
  ["256.256.256.256", 80],
])("an address that cannot be, %j port %i, is one that nothing was sent to", async (host, port) => {
  const dialled = dialTunnel({
    address: { host, port },
    kind: "do",
    key: testKey,
    self: "caller",
    destination: "owner",
  });
  await expect(dialled).rejects.toMatchObject({ code: "CELLKIT_PEER_UNREACHABLE" });
});
