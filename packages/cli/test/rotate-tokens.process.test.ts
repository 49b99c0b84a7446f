// `cellkit rotate` with real routers, stand-ins for dispatchers, and token files that the step's command replaces.
import { mkdir, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { openMemoryLedger } from "@cellkit/ledger";
import { createBackendList, createCredentialFiles, createRouter } from "@cellkit/router";
import { dispatcher, type ScriptedDispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rotateOptions } from "../src/commands/rotate.ts";
import { rotateTokens, type TokenPlane } from "../src/rotate-tokens.ts";
import type { RotationStep } from "../src/rotation-steps.ts";
import { run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

const roles = ["client", "backend", "capability"] as const;
const old = (role: string) => `old-${role}-token-of-this-plane`;
const fresh = (role: string) => `new-${role}-token-of-this-plane`;

let directory: TemporaryDirectory;
let nodes: ScriptedDispatcher[];
let routers: Array<{ url: string; stop: () => Promise<void> }>;
let plane: TokenPlane;
const path = (...names: string[]) => join(directory.path, ...names);

/** What is in use: a directory for the dispatchers, one for each router. */
async function put(place: string, name: string, token: string): Promise<void> {
  await writeFile(path(place, `${name}.new`), token);
  await rename(path(place, `${name}.new`), path(place, name));
}

async function startRouter(
  place: string,
  origins = nodes.map(({ origin }) => origin),
): Promise<{ url: string; stop: () => Promise<void> }> {
  const ledger = await openMemoryLedger();
  const router = createRouter({
    ledger,
    backends: createBackendList({ origins }),
    tokens: createCredentialFiles({
      client: path(place, "client"),
      otherClient: path(place, "next-client"),
      backend: path(place, "backend"),
      capability: path(place, "capability"),
      otherCapability: path(place, "next-capability"),
    }),
  });
  const { port } = await router.listen({ host: "127.0.0.1", port: 0 });
  return { url: `http://127.0.0.1:${port}`, stop: () => router.stop().then(() => ledger.close()) };
}

beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  for (const place of ["dispatchers", "router-1", "router-2", "operator"]) {
    await mkdir(path(place));
    for (const role of roles) await writeFile(path(place, role), old(role));
  }
  for (const role of roles) await writeFile(path("operator", `new-${role}`), fresh(role));
  nodes = await Promise.all(
    ["node-a", "node-b"].map((name) =>
      dispatcher({ tokenFile: path("dispatchers", "backend"), node: { name } }),
    ),
  );
  routers = [await startRouter("router-1"), await startRouter("router-2")];
  const pair = (role: string) => ({
    current: path("operator", role),
    next: path("operator", `new-${role}`),
  });
  plane = {
    routers: routers.map(({ url }) => url),
    dispatchers: nodes.map(({ origin }) => origin),
    client: pair("client"),
    backend: pair("backend"),
    capability: pair("capability"),
  };
});
afterEach(async () => {
  await Promise.all([...routers.map(({ stop }) => stop()), ...nodes.map((node) => node.close())]);
  await directory.remove();
});

const places = ["router-1", "router-2"];
const steps: Partial<Record<RotationStep, () => Promise<unknown>>> = {
  backend: () =>
    Promise.all(["dispatchers", ...places].map((place) => put(place, "backend", fresh("backend")))),
  "client-routers": () => Promise.all(places.map((place) => put(place, "client", fresh("client")))),
  "client-routers-accept": () =>
    Promise.all(places.map((place) => put(place, "next-client", fresh("client")))),
  "capability-routers": () =>
    Promise.all(places.map((place) => put(place, "capability", fresh("capability")))),
  "capability-routers-accept": () =>
    Promise.all(places.map((place) => put(place, "next-capability", fresh("capability")))),
};

async function rotate(options: { overlap?: boolean; stepTimeoutMs?: number; skip?: RotationStep } = {}) {
  const done: RotationStep[] = [];
  const lines: string[] = [];
  const reports = rotateTokens(plane, {
    overlap: options.overlap ?? false,
    stepTimeoutMs: options.stepTimeoutMs ?? 60_000,
    lookMs: 20,
    onProgress: (line) => lines.push(line),
    async perform(step) {
      done.push(step);
      if (step !== options.skip) await steps[step]?.();
    },
  });
  return { done, lines, reports: await reports.catch((error: Error) => error) };
}

describe("the three tokens", () => {
  it("are replaced in their documented order, each step seen before the next, and a second walk has nothing to do", async () => {
    const first = await rotate();
    expect(first.reports).toEqual([
      { step: "backend", evidence: "seen" },
      { step: "client-routers", evidence: "seen" },
      { step: "client-controller", evidence: "said" },
      { step: "capability-routers", evidence: "seen" },
      { step: "capability-api-server", evidence: "said" },
    ]);
    expect(first.done).toEqual([
      ...["backend", "client-routers", "client-controller"],
      ...["capability-routers", "capability-api-server"],
    ]);
    for (const line of first.lines) expect(line).not.toMatch(/(old|new)-[a-z]+-token-of/);
    expect((await rotate()).done).toEqual(["client-controller", "capability-api-server"]);
  });

  it("overlap where routers take two of them: callers change in between", async () => {
    const { done } = await rotate({ overlap: true });
    expect(done).toEqual([
      ...["backend", "client-routers-accept", "client-controller", "client-routers"],
      ...["capability-routers-accept", "capability-api-server", "capability-routers"],
    ]);
  });

  it("stay where a place does not follow, which is named, and the same walk goes on once it does", async () => {
    await Promise.all(["dispatchers", "router-1"].map((place) => put(place, "backend", fresh("backend"))));
    const stuck = await rotate({ skip: "backend", stepTimeoutMs: 0 });
    expect(stuck.done).toEqual(["backend"]);
    expect(stuck.reports).toMatchObject({ code: "CELLKIT_CLI_TOKEN_ROTATION", step: "backend" });
    expect((stuck.reports as Error).message).toMatch(
      new RegExp(
        `^the rotation stays at backend: ${routers[1]?.url} does not hear from node-a, node-b; mend`,
      ),
    );
    await put("router-2", "backend", fresh("backend"));
    const { lines, done } = await rotate();
    expect(lines).toContain("backend: already so");
    expect(done[0]).toBe("client-routers");
  });

  it("are not taken for replaced at routers that hear as many dispatchers, and others than those", async () => {
    const token = old("backend");
    const others = await Promise.all(
      ["node-c", "node-d"].map((name) => dispatcher({ token, node: { name } })),
    );
    await Promise.all(routers.map(({ stop }) => stop()));
    const origins = [...nodes, ...others].map(({ origin }) => origin);
    routers = [await startRouter("router-1", origins), await startRouter("router-2", origins)];
    plane = { ...plane, routers: routers.map(({ url }) => url) };
    await put("dispatchers", "backend", fresh("backend"));
    const partly = await rotate();
    expect((partly.reports as Error).message).toMatch(
      /^the rotation stays at the dispatchers: \S+ has 4 dispatchers in its list, and 2 were given: give each/,
    );
    expect(partly.done).toEqual([]);
    // As many as there are, and not all of them.
    plane = { ...plane, dispatchers: [...plane.dispatchers, ...plane.dispatchers] };
    expect(((await rotate()).reports as Error).message).toMatch(
      / hears from node-c, node-d, at no dispatcher that was given/,
    );
    await Promise.all(others.map((each) => each.close()));
  });

  it("are not replaced while a dispatcher takes the old one, or anything", async () => {
    await steps.backend?.();
    const lenient = createServer(async ({ url = "" }, response) => {
      const headers = { authorization: `Bearer ${fresh("backend")}` };
      const answer = await fetch(`${nodes[0]?.origin}${url}`, { headers });
      response.writeHead(answer.status, { connection: "close" }).end(await answer.text());
    });
    await new Promise<void>((resolve) => lenient.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(lenient.address() as AddressInfo).port}`;
    plane = { ...plane, dispatchers: [origin, ...plane.dispatchers.slice(1)] };
    const { reports } = await rotate({ stepTimeoutMs: 0 });
    await new Promise((resolve) => lenient.close(resolve));
    expect((reports as Error).message).toMatch(
      /^the rotation stays at backend: \S+ still accepts the old backend token; /,
    );
  });

  it("are not taken for replaced at routers where no dispatcher gives a report to see it by", async () => {
    // They take the new token alone, and their reports are no compatible ones.
    const incompatible = createServer(async ({ url = "", headers }, response) => {
      const { authorization = "" } = headers;
      const { status } = await fetch(`${nodes[0]?.origin}${url}`, { headers: { authorization } });
      response.writeHead(status, { connection: "close" }).end("{}");
    });
    await new Promise<void>((resolve) => incompatible.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(incompatible.address() as AddressInfo).port}`;
    plane = { ...plane, dispatchers: [origin, origin] };
    await put("dispatchers", "backend", fresh("backend"));
    const { reports } = await rotate({ skip: "backend", stepTimeoutMs: 0 });
    await new Promise((resolve) => incompatible.close(resolve));
    expect((reports as Error).message).toMatch(
      new RegExp(
        `^the rotation stays at backend: ${routers[0]?.url} cannot be seen to have it: no dispatcher`,
      ),
    );
  });

  it("that equal another role's, or the old one, are refused before anything is done", async () => {
    await writeFile(path("operator", "new-client"), old("backend"));
    const shared = await rotate();
    expect(shared.reports).toMatchObject({ exitCode: 2, code: "CELLKIT_CLI_TOKEN_FILES" });
    expect((shared.reports as Error).message).toMatch(/client token equals the backend token/);
    await writeFile(path("operator", "new-client"), old("client"));
    const same = await rotate();
    expect((same.reports as Error).message).toMatch(/new-client has the old client token/);
    expect([...shared.done, ...same.done]).toEqual([]);
  });

  it("may be given by the files that a step replaces, for the whole of one walk", async () => {
    plane = {
      ...plane,
      client: { ...plane.client, current: path("router-1", "client") },
      backend: { ...plane.backend, current: path("router-1", "backend") },
      capability: undefined,
    };
    const { reports } = await rotate();
    expect(reports).toEqual([
      { step: "backend", evidence: "seen" },
      { step: "client-routers", evidence: "seen" },
      { step: "client-controller", evidence: "said" },
    ]);
    const again = await rotate();
    expect((again.reports as Error).message).toMatch(
      /new-client has the old client token, or \S+router-1\/client is a file that a step has replaced already: give a copy/,
    );
  });

  it("that nobody knows end the walk before anything is done", async () => {
    await writeFile(path("operator", "client"), "another-token-of-24-characters");
    const { done, reports } = await rotate();
    expect((reports as Error).message).toMatch(/accepts neither client token \(refused, refused\)/);
    expect(done).toEqual([]);
  });
});

describe("the command", () => {
  const flags = () => [
    ...routers.flatMap(({ url }) => ["--router", url]),
    ...nodes.flatMap(({ origin }) => ["--backend", origin]),
    ...["--client-token-file", path("operator", "client"), "--token-file", path("operator", "backend")],
    ...["--new-token-file", path("operator", "new-backend")],
  ];

  it("runs a shell command for a step, with the step and the file: code 0", async () => {
    const put = [
      'test "$CELLKIT_ROTATE_STEP" = backend',
      ...["dispatchers", "router-1", "router-2"].map(
        (place) =>
          `cp "$CELLKIT_ROTATE_TOKEN_FILE" ${path(place, "x")} && mv ${path(place, "x")} ${path(place, "backend")}`,
      ),
    ].join(" && ");
    const { code, stdout } = await run(["rotate", ...flags(), "--step-command", put]);
    expect(stdout).toEqual(["seen    backend"]);
    expect(code).toBe(0);
  });

  it("ends with 1 when that fails, and with 3 when a place does not follow", async () => {
    const failed = await run(["rotate", ...flags(), "--step-command", "exit 7"]);
    expect([failed.code, failed.stderr.at(-1)]).toEqual([
      1,
      expect.stringMatching(/backend ended with code 7/),
    ]);
    const late = await run(["rotate", ...flags(), "--step-command", "true", "--step-timeout-ms", "0"]);
    expect([late.code, late.stderr.at(-1)]).toEqual([3, expect.stringMatching(/stays at backend/)]);
  });

  it("says which file cannot be read before it asks anybody: code 2", async () => {
    const { code, stderr } = await run(["rotate", ...flags(), "--new-client-token-file", path("none")]);
    expect([code, stderr]).toEqual([2, [expect.stringMatching(/none .*ENOENT.*; nothing was rotated$/)]]);
    const broken = rotateTokens(plane, {
      caFile: path("none"),
      stepTimeoutMs: 0,
      onProgress: () => undefined,
    });
    await expect(broken).rejects.toMatchObject({ exitCode: 2, code: "CELLKIT_CLI_ROUTER_ACCESS" });
  });

  it.each([
    [{ clientCert: "c" }, /is needed with --client-cert/],
    [{ clientKey: "k" }, /is needed with --client-key/],
    [{ newTokenFile: undefined }, /at least one new token is needed/],
    [{ newCapabilityTokenFile: "d2" }, /needed with --new-capability-token-file/],
    [{ overlap: true }, /needed with --overlap/],
    [{ router: ["http://10.0.0.1:8787"] }, /--allow-insecure-http/],
    [{ backend: ["https://dispatcher"] }, /dispatchers are reached over http/],
  ])("%j is refused", (options, message) => {
    const good = {
      router: ["http://127.0.0.1:1"],
      backend: ["http://a"],
      clientTokenFile: "c",
      tokenFile: "b",
    };
    const parsed = rotateOptions.safeParse({ ...good, newTokenFile: "b2", ...options });
    expect(parsed.error?.message).toMatch(message);
  });
});
