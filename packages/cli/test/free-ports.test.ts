import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { freePorts } from "../src/free-ports.ts";

it("gives ports that are all different, can be listened on, and are no ports of outgoing connections", async () => {
  const ports = await freePorts(20);
  expect(new Set(ports).size).toBe(20);
  for (const port of ports) {
    expect(port).toBeLessThan(32_768);
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    await new Promise((resolve) => server.close(resolve));
  }
});
