// `cellkit qualify executions` on a plane of this machine: the real router, stand-ins for dispatchers, and commands that are functions here.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type ExecutionRequestInput, RouterClient } from "@cellkit/execution";
import { type Ledger, openMemoryLedger } from "@cellkit/ledger";
import { createBackendList, createCredentialFiles, createRouter, type Router } from "@cellkit/router";
import { dispatcher, type RunFn, type ScriptedDispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HookError } from "../src/index.ts";
import type { CheckEvidence } from "../src/qualify-executions/evidence.ts";
import type { HookFn, HookName, PlaneOptions } from "../src/qualify-executions/plane.ts";
import { qualifyExecutions } from "../src/qualify-executions/qualify-executions.ts";
import { run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

const request = (task: string): ExecutionRequestInput => ({
  apiVersion: "celln.dev/v1alpha1",
  id: "template",
  workload: { id: "qualification", caller: "test" },
  forge: { task },
  capabilities: { workspace: "none", timeoutMs: 60_000, memoryBytes: 1_048_576, outputBytes: 4_096 },
  execution: { lane: "agent", requireHardwareIsolation: true },
});

/** Long work goes on until its time is over or it is cancelled. */
const runs: RunFn = async ({ request: { forge, capabilities }, signal }) => {
  if (forge?.task !== "long") return { kind: "succeeded", output: "ok" };
  await pause(Number(capabilities.timeoutMs), undefined, { signal, ref: false }).catch(() => undefined);
  return signal.aborted ? { kind: "cancelled" } : { kind: "failed", reason: "out of time" };
};

let directory: TemporaryDirectory;
let nodes: [ScriptedDispatcher, ScriptedDispatcher];
let ledger: Ledger;
let router: Router;
let port = 0;
let notes: string[] = [];
const path = (name: string) => join(directory.path, name);

async function startRouter(): Promise<void> {
  router = createRouter({
    ledger,
    backends: createBackendList({ origins: nodes.map(({ origin }) => origin) }),
    tokens: createCredentialFiles({
      client: path("client"),
      otherClient: path("next-client"),
      backend: path("backend"),
      capability: path("capability"),
      otherCapability: path("next-capability"),
    }),
  });
  ({ port } = await router.listen({ host: "127.0.0.1", port }));
}

beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  await writeFile(path("client"), "client-token-of-this-plane");
  await writeFile(path("backend"), "backend-token-of-this-plane");
  await writeFile(path("capability"), "discovery-token-of-this-plane");
  const start = (name: string) => dispatcher({ tokenFile: path("backend"), run: runs, node: { name } });
  nodes = [await start("node-a"), await start("node-b")];
  ledger = await openMemoryLedger();
  port = 0;
  notes = [];
  await startRouter();
});
afterEach(async () => {
  await router.stop({ signal: AbortSignal.abort() });
  await Promise.all([...nodes.map((node) => node.close()), ledger.close()]);
  await directory.remove();
});

const hooks: Record<HookName, HookFn> = {
  async "kill-replica"() {
    await router.stop({ signal: AbortSignal.abort() });
    await startRouter();
  },
  "start-replica": async () => undefined,
  "kill-node": () => nodes[0].kill(),
  "start-node": () => nodes[0].restart(),
  async "lose-answers"() {
    nodes[0].fault("submit", { kind: "reset", when: "after-accept" }, { times: 1_000 });
    nodes[0].fault("read", { kind: "reset", when: "before-accept" }, { times: 1_000 });
  },
  "restore-answers": () => nodes[0].heal(),
  async rotate() {
    await writeFile(path("client"), "second-client-token-of-this-plane");
    await writeFile(path("backend"), "second-backend-token-of-this-plane");
    await writeFile(path("capability"), "second-discovery-token-of-this-plane");
  },
  upgrade: async () => nodes[1].change({ binaryVersion: "0.7.0" }),
  rollback: async () => nodes[1].change({ binaryVersion: "0.6.0" }),
};

async function qualify(
  given: Partial<Record<HookName, HookFn>>,
  settleMs = 5_000,
  more: Partial<PlaneOptions> = {},
) {
  const checks: CheckEvidence[] = [];
  const client = new RouterClient({
    url: `http://127.0.0.1:${port}`,
    tokenFile: path("client"),
    submitTimeoutMs: 3_000,
  });
  const evidence = await qualifyExecutions(
    {
      client,
      router: { url: `http://127.0.0.1:${port}`, tokenFile: path("client") },
      backends: nodes.map(({ origin }) => origin),
      backendTokenFile: path("backend"),
      request: request("short"),
      longRequest: request("long"),
      hooks: given,
      settleMs,
      ambiguousMs: 600,
      shortTimeoutMs: 200,
      signal: new AbortController().signal,
      onNote: (line) => notes.push(line),
      ...more,
    },
    { tool: { cellkit: "0", node: "0" }, router: `http://127.0.0.1:${port}`, digests: {}, templates: {} },
    (check) => checks.push(check),
  );
  expect(checks).toEqual(evidence.checks);
  return { evidence, found: new Map(evidence.checks.map((check) => [check.name, check])) };
}

describe("the acceptance list", () => {
  it("is shown on a plane that keeps it, with evidence of every execution", async () => {
    const { evidence, found } = await qualify(hooks, 5_000, { capabilityTokenFile: path("capability") });
    expect(evidence.notShown.join()).not.toMatch(/discovery token/);
    expect([...found.values()].filter(({ result }) => result !== "passed")).toEqual([]);
    expect(evidence.verdict).toBe("shown");
    expect(found.get("ambiguous-acceptance")?.detail).toMatch(
      /sent maybe; the owner alone has it, Succeeded/,
    );
    expect(found.get("node-loss")?.detail).toMatch(/owner says CELLKIT_EXECUTION_INTERRUPTED/);
    expect(evidence.hooks.map(({ hook }) => hook)).toEqual([
      ...["lose-answers", "restore-answers", "kill-replica", "start-replica", "kill-node", "start-node"],
      ...["rotate", "upgrade", "rollback"],
    ]);
    const versions = evidence.nodes.map(({ binaryVersion }) => binaryVersion);
    expect(new Set(versions)).toEqual(new Set(["0.6.0", "0.7.0"]));
    for (const each of evidence.executions) {
      expect(each.requestSha256).toMatch(/^[0-9a-f]{64}$/);
      expect(each.holders.length).toBeLessThan(2);
    }
    expect(evidence.notShown.join()).toMatch(/real controller/);
    expect(JSON.stringify(evidence)).not.toMatch(/token-of-this-plane/);
  });

  it("is not shown by commands that do nothing, and each is told what was not seen", async () => {
    const nothing = async () => undefined;
    const names = ["kill-replica", "start-replica", "rotate", "upgrade", "rollback"] as const;
    const { evidence, found } = await qualify(Object.fromEntries(names.map((name) => [name, nothing])));
    expect(evidence.verdict).toBe("incomplete");
    for (const [name, detail] of [
      ["replica-loss", /none was cut or refused: no replica was missed/],
      ["rotation", /changed nothing: the old token is in the file of client and of backend/],
      ["upgrade", /every dispatcher reports the version that it had \(0\.6\.0\)/],
      ["rollback", /every dispatcher reports the version that it had/],
    ] as const)
      expect(found.get(name)).toMatchObject({ result: "not-shown", detail: expect.stringMatching(detail) });
  });

  it("is not shown by a rollback to a third version, and fails where an old token is still taken", async () => {
    const lenient = async () => {
      await writeFile(path("client"), "second-client-token-of-this-plane");
      await writeFile(path("backend"), "second-backend-token-of-this-plane");
      await writeFile(path("next-client"), "client-token-of-this-plane");
    };
    const given = {
      rotate: lenient,
      upgrade: hooks.upgrade,
      rollback: async () => nodes[1].change({ binaryVersion: "0.5.0" }),
    };
    const { found, evidence } = await qualify(given, 1_000);
    expect(found.get("rotation")).toMatchObject({
      result: "failed",
      detail: "the router does not refuse the old client token",
    });
    // The discovery token's file was not given, so that nothing is said of it.
    expect(evidence.notShown).toContain("the rotation of the discovery token: needs --capability-token-file");
    expect(found.get("upgrade")?.result).toBe("passed");
    expect(found.get("rollback")).toMatchObject({
      result: "not-shown",
      detail: expect.stringMatching(/reports 0\.5\.0, and had 0\.6\.0 before the upgrade/),
    });
  });

  it.each<[string, string, () => Promise<void>, string, RegExp]>([
    [
      "that stays",
      "capability",
      async () => undefined,
      "not-shown",
      /changed nothing: .* file of capability/,
    ],
    [
      "that routers do not know",
      "operator",
      () => writeFile(path("operator"), "third-discovery-token-of-this-plane"),
      "failed",
      /does not accept the new discovery token/,
    ],
    [
      "whose old one is still taken",
      "capability",
      async () => {
        await writeFile(path("next-capability"), "discovery-token-of-this-plane");
        await writeFile(path("capability"), "second-discovery-token-of-this-plane");
      },
      "failed",
      /does not refuse the old discovery token/,
    ],
  ])("is not shown by a discovery token %s", async (_how, file, change, result, detail) => {
    await writeFile(path("operator"), "discovery-token-of-this-plane");
    const rotate = async () => {
      await writeFile(path("client"), "second-client-token-of-this-plane");
      await writeFile(path("backend"), "second-backend-token-of-this-plane");
      await change();
    };
    const more = { longRequest: undefined, capabilityTokenFile: path(file) };
    const { found } = await qualify({ rotate }, 400, more);
    expect(found.get("rotation")).toMatchObject({ result, detail: expect.stringMatching(detail) });
  });

  it("is incomplete where a command is missing, and says which", async () => {
    const { evidence, found } = await qualify({ "start-node": hooks["start-node"] });
    expect(evidence.verdict).toBe("incomplete");
    expect(found.get("node-loss")).toMatchObject({ result: "not-shown", detail: "needs --kill-node" });
    expect(found.get("cancellation")?.result).toBe("passed");
    expect(evidence.notShown).toContain("rotation: needs --rotate");
  });
});

describe("a plane that does not keep it fails", () => {
  it("when a command of the operator's fails, and the other checks go on", async () => {
    const upgrade = async () => {
      throw new HookError("upgrade", "code 7");
    };
    const { evidence, found } = await qualify({ upgrade });
    expect(found.get("upgrade")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/^CELLKIT_CLI_HOOK: .*ended with code 7/),
    });
    expect(found.get("at-most-once")?.result).toBe("passed");
    expect(evidence.verdict).toBe("failed");
  });

  it("when two commands fail, and both are told", async () => {
    const failing = (name: HookName) => async () => {
      throw new HookError(name, "code 7");
    };
    const { found } = await qualify({
      "lose-answers": failing("lose-answers"),
      "restore-answers": failing("restore-answers"),
    });
    expect(found.get("ambiguous-acceptance")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/--lose-answers ended with code 7.*; then .*--restore-answers ended/),
    });
  });

  it("when it is told to stop, and a plane that cannot be restored then is told of all the same", async () => {
    const stop = new AbortController();
    const given: Partial<Record<HookName, HookFn>> = {
      "lose-answers": async () => stop.abort("SIGINT"),
      "restore-answers": async () => {
        throw new HookError("restore-answers", "code 9");
      },
    };
    const more = { longRequest: undefined, signal: stop.signal };
    await expect(qualify(given, 5_000, more)).rejects.toBe("SIGINT");
    expect(notes).toEqual([
      expect.stringMatching(/plane is not as it was.*--restore-answers ended with code 9/),
    ]);
  });

  it("when an upgrade loses records", async () => {
    const upgrade = async () => {
      for (const node of nodes) await node.restart({ journal: "lost" });
    };
    const { evidence, found } = await qualify({ upgrade });
    expect(found.get("upgrade")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/^CELLKIT_EXECUTION_OWNER_LOST/),
    });
    expect(evidence.verdict).toBe("failed");
  });

  it("when an owner's run is also somebody else's", async () => {
    const [first, second] = nodes;
    const rotate = async () => {
      for (const { body } of first.calls.filter(({ call }) => call === "submit"))
        await fetch(`${second.origin}/v1/executions`, {
          method: "POST",
          headers: { authorization: "Bearer backend-token-of-this-plane" },
          body: Buffer.from(body),
        });
    };
    const { found } = await qualify({ rotate });
    expect(found.get("at-most-once")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/ is known to .* and /),
    });
  });

  it("when two origins lead to one node, or one to two", async () => {
    nodes[1].change({ name: "node-a" });
    const { found } = await qualify({});
    expect(found.get("two-dispatchers")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/fewer than two/),
    });
  });

  it("and what restores it is done even where a check cannot go on", async () => {
    const done: string[] = [];
    const { found } = await qualify({
      "lose-answers": async () => {
        await hooks["lose-answers"]("");
        throw new TypeError("a defect");
      },
      "restore-answers": async () => void done.push("restored"),
    }).catch((error: Error) => ({ found: error }));
    expect(found).toBeInstanceOf(TypeError);
    expect(done).toEqual(["restored"]);
  });
});

describe("the command", () => {
  const flags = async () => {
    await writeFile(path("request.json"), JSON.stringify(request("short")));
    return [
      ...["--router", `http://127.0.0.1:${port}`, "--client-token-file", path("client")],
      ...nodes.flatMap(({ origin }) => ["--backend", origin]),
      ...["--token-file", path("backend"), "--request", path("request.json"), "--out", path("evidence.json")],
    ];
  };

  it("writes evidence once, with what was not shown: code 3, and 2 where it is there already", async () => {
    const digest = `router=sha256:${"0".repeat(64)}`;
    const upgrade = `test "$CELLKIT_QUALIFY_STEP" = upgrade && echo "$CELLKIT_QUALIFY_BACKEND" > ${path("hook")}`;
    const args = ["qualify", "executions", ...(await flags()), "--digest", digest, "--upgrade", upgrade];
    const { code, stdout } = await run(args);
    expect(stdout.at(-1)).toBe(`incomplete: ${path("evidence.json")}`);
    expect(code).toBe(3);
    const evidence = JSON.parse(await readFile(path("evidence.json"), "utf8"));
    expect(evidence).toMatchObject({
      verdict: "incomplete",
      digests: { router: `sha256:${"0".repeat(64)}` },
      templates: { request: expect.stringMatching(/^[0-9a-f]{64}$/) },
      tool: { node: process.version },
    });
    const results = evidence.checks.map(({ name, result }: CheckEvidence) => `${name} ${result}`);
    // It only wrote a file.
    expect(results).toContain("upgrade not-shown");
    expect(results).toContain("node-loss not-shown");
    expect(await readFile(path("hook"), "utf8")).toBe(`${nodes[0].origin}\n`);
    expect((await run(args)).code).toBe(2);
  });

  it("a request that is none is refused, and leaves no evidence: code 2", async () => {
    const args = await flags();
    await writeFile(path("request.json"), '{"id":1}');
    const { code, stderr } = await run(["qualify", "executions", ...args]);
    expect(stderr.join("\n")).toMatch(/request\.json is no execution request/);
    expect(code).toBe(2);
    expect(await readdir(directory.path)).not.toContain("evidence.json");
  });
});
