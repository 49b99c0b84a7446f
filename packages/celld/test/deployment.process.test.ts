// A node before its first deployment, with one that does not load, and with a good one: it is never started again.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import type { TestNode } from "./support/test-node.ts";

const project = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

let fleet: Fleet;
let node: TestNode;

beforeAll(async () => {
  fleet = await Fleet.open();
  node = await fleet.node(0);
  await node.ready();
});
afterAll(() => fleet[Symbol.asyncDispose]());

it("without a deployment the node is healthy and answers 404", async () => {
  await until("health", () => node.healthy());
  expect(await node.ask("/anything")).toEqual({ status: 404, body: { error: "not_found" } });
  const state = await node.state();
  expect(state).toMatchObject({ runtime: { state: "ready" }, occupied: 0, restoring: 0 });
  expect(state).not.toHaveProperty("deployment");
});

it("a first deployment that does not load makes it unhealthy, and the log has the Worker's own text", async () => {
  await fleet.deploy(project("broken"));
  const line = await node.logged(
    "refusal",
    ({ level, msg }) => level === "error" && /deployment/.test(String(msg)),
  );
  expect(JSON.stringify(line)).toContain("the price list is missing");
  await until("503 of its health", async () => !(await node.healthy()));
  expect(await node.state()).toMatchObject({ runtime: { state: "failed" } });
  expect((await node.ask("/anything")).status).toBe(503);
  expect(node.process.exit).toBeUndefined();
});

it("a deployment that loads is served without a restart", async () => {
  await fleet.deploy(project("mended"));
  await node.process.until("healthy", () => node.healthy(), 60_000);
  expect(await node.ask("/anything")).toEqual({ status: 200, body: { hello: "world" } });
  expect(await node.state()).toMatchObject({ deployment: { script_name: "greeting" } });
});

it("the Worker sees the client's address, and no field that only the node and its peers may write", async () => {
  const own = { "x-cells-a": "1", "X-Celld-Owner": "2", "cellkit-cf-0": "3", "Cellkit-Outcome": "not-run" };
  const { body } = await node.ask("/request", { headers: { ...own, "x-cell": "kept" } });
  expect(body["clientIp"]).toBe("127.0.0.1");
  const headers = body["headers"] as Record<string, string>;
  expect(headers["x-cell"]).toBe("kept");
  expect(Object.keys(headers).filter((name) => /^(x-cells-|x-celld-|cellkit-)/.test(name))).toEqual([]);
});
