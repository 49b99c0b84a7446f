import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { freePorts } from "../src/free-ports.ts";

it("gives ports that are all different, can be listened on, and are no ports of outgoing connections", async () => {
  const ports = await freePorts(20);
  expect(new Set(ports).size).toBe(20);
  let takenCount = 0;
  for (const port of ports) {
    expect(port).toBeLessThan(32_768);
    const server = createServer().listen(port, "127.0.0.1");
    const isOpen = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (isOpen) await new Promise((resolve) => server.close(resolve));
    else takenCount += 1;
  }
  // Another process may have taken one by now.
  expect(takenCount).toBeLessThan(3);
});
