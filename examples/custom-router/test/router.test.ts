import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CallError, executionId, RouterClient } from "@cellkit/execution";
import type { Ledger, openLedger } from "@cellkit/ledger";
import { dispatcher, ranAtMostOnce, type ScriptedDispatcher, testBackendToken } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { placeWhereFree, startRouter } from "../src/router.ts";

/** Every ledger that was opened in a test. */
const opened: Ledger[] = [];
vi.mock(import("@cellkit/ledger"), async (original) => {
  const ledgers = await original();
  return {
    ...ledgers,
    openLedger: async (...given: Parameters<typeof openLedger>) => {
      const ledger = await ledgers.openLedger(...given);
      opened.push(ledger);
      return ledger;
    },
  };
});

describe("the placement rule", () => {
  const figures = (live: number, max: number) =>
    ({ healthy: true, node: { live_cells: BigInt(live), max_cells: BigInt(max) } }) as never;
  const place = (...health: unknown[]) =>
    placeWhereFree({
      id: "any",
      body: new Uint8Array(),
      backends: health.map((_, index) => `http://n${index}`),
      health: async (origin) => health[Number(origin.at(-1))] as never,
      signal: AbortSignal.timeout(60_000),
    });

  it("takes the one with the largest part free, wherever it stands in the list", async () => {
    expect(await place(figures(1, 4), figures(1, 8), figures(3, 4))).toBe("http://n1");
    expect(await place(figures(1, 8), figures(1, 4))).toBe("http://n0");
  });

  it("takes no full and no unhealthy one, and none where all are", async () => {
    const unhealthy = { healthy: false, node: undefined };
    expect(await place(figures(4, 4), figures(3, 4), unhealthy)).toBe("http://n1");
    expect(await place(figures(4, 4), unhealthy)).toBeUndefined();
  });

  it("takes one that tells no figures only where no other has room", async () => {
    const silent = { healthy: true, node: undefined };
    expect(await place(silent, figures(7, 8))).toBe("http://n1");
    expect(await place(silent, figures(8, 8))).toBe("http://n0");
  });
});

describe("the router", () => {
  let directory: string;
  let large: ScriptedDispatcher;
  let small: ScriptedDispatcher;
  let router: Awaited<ReturnType<typeof startRouter>>;
  let client: RouterClient;

  beforeEach(async () => {
    opened.length = 0;
    directory = await mkdtemp(join(tmpdir(), "cellkit-custom-router-test-"));
    const clientTokenFile = join(directory, "client");
    const backendTokenFile = join(directory, "backend");
    await writeFile(clientTokenFile, "client-token-of-this-example");
    await writeFile(backendTokenFile, testBackendToken);
    large = await dispatcher({ run: "hold", node: { maxCells: 4 } });
    small = await dispatcher({ run: "hold", node: { maxCells: 2 } });
    const backends = [small.origin, large.origin];
    const ledger = join(directory, "ledger");
    router = await startRouter({ ledger, backends, clientTokenFile, backendTokenFile, port: 0 });
    client = new RouterClient({ url: router.url, tokenFile: clientTokenFile });
  });
  afterEach(async () => {
    await router.stop();
    await Promise.all([large.close(), small.close()]);
    await rm(directory, { recursive: true });
  });

  const submit = (name: string, timeoutMs = 30_000) =>
    client.submit(
      {
        apiVersion: "celln.dev/v1alpha1",
        id: executionId("test", name),
        workload: { id: "test", caller: "custom-router" },
        forge: { task: "Print a prime number." },
        capabilities: { workspace: "none", timeoutMs: 60_000, memoryBytes: 1_048_576, outputBytes: 4_096 },
        execution: { lane: "agent", requireHardwareIsolation: true },
      },
      { timeoutMs },
    );

  it("leaves no ledger open, neither when it cannot listen nor when it is stopped", async () => {
    const ledger = join(directory, "another-ledger");
    const place = {
      ledger,
      backends: [small.origin],
      clientTokenFile: directory,
      backendTokenFile: directory,
    };
    const port = Number(new URL(router.url).port);
    await expect(startRouter({ ...place, port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await (await startRouter({ ...place, port: 0 })).stop();
    expect(opened).toHaveLength(3);
    const states = await Promise.allSettled(opened.map((each) => each.lookup("any")));
    expect(states).toMatchObject([
      { status: "fulfilled" },
      { reason: { code: "CELLKIT_LEDGER_CLOSED" } },
      { reason: { code: "CELLKIT_LEDGER_CLOSED" } },
    ]);
  });

  it("fills both to the last cell, and a repeat goes to the first owner though it is full", async () => {
    for (const name of ["1", "2", "3", "4", "5", "6"]) await submit(name);
    expect([large.runs.size, small.runs.size]).toEqual([4, 2]);
    for (const name of ["1", "2", "3", "4", "5", "6"]) await submit(name);
    expect(ranAtMostOnce(large, small).size).toBe(6);
  });

  it("sends nothing where all are full, and the same id runs once there is room", async () => {
    for (const name of ["1", "2", "3", "4", "5", "6"]) await submit(name);
    const refused = await submit("7", 300).catch((error: CallError) => error);
    expect(refused).toMatchObject({ next: "same-id" });
    // What the caller knows of it is a matter of when its time was up; nobody got it.
    expect([...large.calls, ...small.calls].filter(({ id }) => id === executionId("test", "7"))).toEqual([]);
    await small.finish([...small.runs.keys()][0] as string);
    await submit("7");
    expect(small.runs.get("test-7")).toBe(1);
  });
});

it("is written in less than sixty lines", async () => {
  const text = await readFile(new URL("../src/router.ts", import.meta.url), "utf8");
  expect(text.split("\n").length).toBeLessThan(60);
});
