// `cellkit qualify executions` on a plane that keeps what it must, with commands that do what they are for, or nothing.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type { CheckEvidence } from "../src/qualify-executions/evidence.ts";
import { EvidenceFile } from "../src/qualify-executions/evidence-file.ts";
import { run } from "./support/command.ts";
import { LocalPlane, request } from "./support/local-plane.ts";

let plane: LocalPlane;
beforeEach(async () => {
  plane = await LocalPlane.open();
});
afterEach(() => plane.close());

describe("the acceptance list", () => {
  it("is shown on a plane that keeps it, with evidence of every execution", async () => {
    const { evidence, found } = await plane.qualify(plane.hooks, {
      capabilityTokenFile: plane.path("capability"),
    });
    expect(evidence.notShown.join()).not.toMatch(/discovery token/);
    expect([...found.values()].filter(({ result }) => result !== "passed")).toEqual([]);
    expect([evidence.verdict, [...found.values()]]).toEqual(["shown", evidence.checks]);
    expect(found.get("ambiguous-acceptance")?.detail).toMatch(
      /sent maybe; the owner alone has it, Succeeded/,
    );
    expect(found.get("node-loss")?.detail).toMatch(/owner says CELLKIT_EXECUTION_INTERRUPTED/);
    expect(new Set(evidence.hooks.map(({ end }) => end))).toEqual(new Set(["code 0"]));
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
    const { evidence, found } = await plane.qualify(Object.fromEntries(names.map((name) => [name, nothing])));
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
      await plane.rotate(["client", "backend"]);
      await writeFile(plane.path("next-client"), "client-token-of-this-plane");
    };
    const given = {
      rotate: lenient,
      upgrade: plane.hooks.upgrade,
      rollback: async () => plane.nodes[1].change({ binaryVersion: "0.5.0" }),
    };
    const { found, evidence } = await plane.qualify(given, { settleMs: 1_000 });
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

  const discovery: [string, string, () => Promise<void>, string, RegExp][] = [
    [
      "that stays",
      "capability",
      async () => undefined,
      "not-shown",
      /changed nothing: .* file of capability/,
    ],
    [
      "whose old one is still taken",
      "capability",
      async () => {
        await writeFile(plane.path("next-capability"), "discovery-token-of-this-plane");
        await writeFile(plane.path("capability"), "second-discovery-token-of-this-plane");
      },
      "failed",
      /does not refuse the old discovery token/,
    ],
  ];
  if (inject("size") === "long")
    discovery.push([
      "that routers do not know",
      "operator",
      () => writeFile(plane.path("operator"), "third-discovery-token-of-this-plane"),
      "failed",
      /does not accept the new discovery token/,
    ]);

  it.each(discovery)("is not shown by a discovery token %s", async (_how, file, change, result, detail) => {
    await writeFile(plane.path("operator"), "discovery-token-of-this-plane");
    const rotate = async () => {
      await plane.rotate(["client", "backend"]);
      await change();
    };
    const more = { settleMs: 400, longRequest: undefined, capabilityTokenFile: plane.path(file) };
    const { found } = await plane.qualify({ rotate }, more);
    expect(found.get("rotation")).toMatchObject({ result, detail: expect.stringMatching(detail) });
  });

  it("is not shown where the owner is none of the dispatchers that were given, and at-most-once is not claimed", async () => {
    const [first, second] = plane.nodes;
    second.change({ kvm: false });
    const { found } = await plane.qualify({}, { backends: [second.origin], longRequest: undefined });
    expect(found.get("submission")).toMatchObject({
      result: "not-shown",
      detail: "node-a ran it, and is none of the dispatchers that were given: give each by --backend",
    });
    expect(found.get("at-most-once")).toMatchObject({
      result: "not-shown",
      detail: expect.stringMatching(/^1 of 1 ids ran at none of .* on node-a: give each by --backend$/),
    });
    expect(first.calls.filter(({ call }) => call === "submit")).toHaveLength(1);
  });

  it("is incomplete where a command is missing, and says which", async () => {
    const { evidence, found } = await plane.qualify({ "start-node": plane.hooks["start-node"] });
    expect(evidence.verdict).toBe("incomplete");
    expect(found.get("node-loss")).toMatchObject({ result: "not-shown", detail: "needs --kill-node" });
    expect(found.get("cancellation")?.result).toBe("passed");
    expect(evidence.notShown).toContain("rotation: needs --rotate");
  });
});

describe("the command", () => {
  const flags = async () => {
    await writeFile(plane.path("request.json"), JSON.stringify(request("short")));
    return [
      ...["--router", plane.url, "--client-token-file", plane.path("client")],
      ...plane.nodes.flatMap(({ origin }) => ["--backend", origin]),
      ...[
        "--token-file",
        plane.path("backend"),
        "--request",
        plane.path("request.json"),
        "--out",
        plane.path("evidence.json"),
      ],
    ];
  };

  it("writes evidence once, with what was not shown: code 3, and 2 where it is there already", async () => {
    const digest = `router=sha256:${"0".repeat(64)}`;
    const upgrade = `test "$CELLKIT_QUALIFY_STEP" = upgrade && echo "$CELLKIT_QUALIFY_BACKEND" > ${plane.path("hook")}`;
    const args = ["qualify", "executions", ...(await flags()), "--digest", digest, "--upgrade", upgrade];
    const { code, stdout, stderr } = await run(args);
    // What the lines of the checks say is not said again.
    expect(stderr.join("\n")).not.toMatch(/not shown: node-loss/);
    expect(stderr).toContain("7 things that no run of this command shows are in the evidence, as notShown");
    expect(stdout.at(-1)).toBe(`incomplete: ${plane.path("evidence.json")}`);
    expect(code).toBe(3);
    const evidence = JSON.parse(await readFile(plane.path("evidence.json"), "utf8"));
    expect(evidence).toMatchObject({
      verdict: "incomplete",
      digests: { router: `sha256:${"0".repeat(64)}` },
      templates: { request: expect.stringMatching(/^[0-9a-f]{64}$/) },
      tool: { node: process.version },
      hooks: [{ hook: "upgrade", command: upgrade, end: "code 0" }],
    });
    const results = evidence.checks.map(({ name, result }: CheckEvidence) => `${name} ${result}`);
    // It only wrote a file.
    expect(results).toContain("upgrade not-shown");
    expect(results).toContain("node-loss not-shown");
    expect(await readFile(plane.path("hook"), "utf8")).toBe(`${plane.nodes[0].origin}\n`);
    const again = await run(args);
    expect([again.code, again.stderr]).toEqual([
      2,
      [expect.stringMatching(/is there already: give another/)],
    ]);
    expect(await readdir(plane.path())).not.toContain("evidence.json.partial");
  });

  it("killed, it leaves what it had shown under another name, which the next one does not take for its own", async () => {
    const args = ["qualify", "executions", ...(await flags()), "--upgrade", "kill -9 $PPID"];
    const killed = await run(args);
    expect(killed.code).toBeNull();
    const names = await readdir(plane.path());
    expect(names).not.toContain("evidence.json");
    const partial = JSON.parse(await readFile(plane.path("evidence.json.partial"), "utf8"));
    expect(partial.verdict).toBe("incomplete");
    expect(partial.checks.map(({ name }: CheckEvidence) => name)).toContain("submission");
    expect(partial.notShown).toContain("at-most-once: it was not come to");
    await expect(EvidenceFile.create(plane.path("evidence.json"))).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/partial is there, of a run that did not end/),
    });
  });

  it.runIf(inject("size") === "long")("stopped by a signal, it says where that is: code 130", async () => {
    const args = ["qualify", "executions", ...(await flags()), "--upgrade", "kill -INT $PPID"];
    const { code, stderr } = await run(args);
    expect(stderr.join("\n")).toContain(
      `what was found until then is in ${plane.path("evidence.json.partial")}`,
    );
    expect(code).toBe(130);
    expect(await readdir(plane.path())).not.toContain("evidence.json");
  });

  it("a request that is none is refused, and leaves no evidence: code 2", async () => {
    const args = await flags();
    await writeFile(plane.path("request.json"), '{"id":1}');
    const { code, stderr } = await run(["qualify", "executions", ...args]);
    expect(stderr.join("\n")).toMatch(/request\.json is no execution request/);
    expect(code).toBe(2);
    expect((await readdir(plane.path())).join()).not.toContain("evidence.json");
  });

  it("certificates that cannot be read are told before anything is tried: code 2", async () => {
    const args = ["qualify", "executions", ...(await flags()), "--ca-file", plane.path("none")];
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout, stderr]).toEqual([
      2,
      [],
      [expect.stringMatching(/none cannot be read \(ENOENT\)$/)],
    ]);
    expect(plane.nodes[0].calls).toEqual([]);
  });
});
