// The daemon itself: how it starts, what it refuses, what it tells of itself, and how it stops.
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dispatcher, testBackendToken } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { callBytes, executionBytes } from "./support/execution-request.ts";
import { rawCall } from "./support/raw-call.ts";
import { RouterProcess, TokenFiles } from "./support/router-process.ts";

let directory: string;
let tokens: TokenFiles;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-daemon-"));
  tokens = await TokenFiles.create(join(directory, "tokens"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const ledger = () => `--ownership-dir=${join(directory, "ledger")}`;
const dead = "--backends=http://127.0.0.1:1";

/** Nothing of a token in what it wrote or answered. */
function expectNoSecrets(router: RouterProcess, ...more: string[]): void {
  const text = [...router.lines, ...more].join("\n");
  for (const token of [...tokens.all, testBackendToken]) expect(text).not.toContain(token);
}

describe("a start that is refused", () => {
  /** The exit code and what was written. */
  async function ends(args: readonly string[]): Promise<{ code: number | null; text: string }> {
    await using router = new RouterProcess(args);
    const { code } = await router.run().exited;
    expectNoSecrets(router);
    return { code, text: router.lines.join("\n") };
  }

  it("ends with 2 and says everything that is wrong with the flags", async () => {
    const { code, text } = await ends(["--backends=https://a", "--scoped-token-file=/s", "--mode=fair"]);
    expect(code).toBe(2);
    for (const part of [
      "is https",
      "scoped operations are not served yet",
      "--mode",
      "--ownership-dir",
      "--token-file",
    ])
      expect(text).toContain(part);
  });

  it("ends with 1 for tokens that are equal, once the ledger is open", async () => {
    await tokens.write("capability", tokens.token("client"));
    const { code, text } = await ends([dead, ledger(), ...tokens.flags]);
    expect(code).toBe(1);
    expect(text).toContain("the capability token equals the client token");
    expect(await readFile(join(directory, "ledger", "cellkit.ledger"), "utf8")).toContain("ledgerId");
  });

  it("ends with 1 and says all that is wrong with ledger, tokens and certificate", async () => {
    await tokens.write("capability", tokens.token("client"));
    const nowhere = join(directory, "nowhere");
    const { code, text } = await ends([
      ...[dead, ledger(), "--require-existing-ledger", ...tokens.flags],
      ...[`--tls-cert=${nowhere}.crt`, `--tls-key=${nowhere}.key`],
    ]);
    expect(code).toBe(1);
    for (const part of [
      "CELLKIT_ROUTER_LEDGER_ABSENT",
      "CELLKIT_ROUTER_CREDENTIALS",
      "CELLKIT_ROUTER_CERTIFICATE",
    ])
      expect(text).toContain(part);
  });

  it("ends with 1 for a ledger that must be there and is not, and makes none", async () => {
    const { code, text } = await ends([dead, ledger(), "--require-existing-ledger", ...tokens.flags]);
    expect(code).toBe(1);
    expect(text).toContain("CELLKIT_ROUTER_LEDGER_ABSENT");
    await expect(readFile(join(directory, "ledger", "cellkit.ledger"))).rejects.toThrow("ENOENT");
  });

  it("ends with 1 for a port that is taken", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await until("a port", () => server.listening);
    const { port } = server.address() as { port: number };
    await using router = new RouterProcess([dead, ledger(), ...tokens.flags]);
    router.usePort(port);
    expect(await router.run().exited).toEqual({ code: 1, signal: null });
    expect(router.lines.join("\n")).toContain("CELLKIT_DAEMON_LISTEN");
    server.close();
  });
});

it("it serves, takes rotated tokens at once, alarms at another replica's list, and stops with 0", async () => {
  await using backend = await dispatcher({ tokenFile: tokens.path("backend") });
  const args = [ledger(), "--ledger-capacity=6", ...tokens.flags];
  await using router = await new RouterProcess([
    ...args,
    `--backends=${backend.origin}`,
    "--replica=one",
  ]).start();
  const submit = (id: string) =>
    rawCall(router.port, callBytes("POST /v1/executions", tokens.token("client"), executionBytes(id)));
  expect((await submit("a"))?.status).toBe(202);

  await using other = await new RouterProcess([
    ...args,
    `--backends=${backend.origin},http://127.0.0.1:1`,
    "--replica=two",
    "--isolate-discovery",
  ]).start();
  await other.logged(/the replica one has another list of dispatchers/);
  const metrics = (await other.internal("/metrics")).text;
  expect(metrics).toContain('router_replica_mismatches{part="backends"} 1\n');
  expect(metrics).toContain('router_replica_mismatches{part="client"} 0\n');

  // The documented order: dispatchers and the routers' backend token, then clients, then discovery.
  for (const [at, role] of ["backend", "client", "capability"].entries()) {
    const old = tokens.token(role);
    await tokens.rotate(role);
    expect((await submit(`rotated-${at}`))?.status).toBe(202);
    if (role === "backend") continue;
    const refused = await rawCall(router.port, callBytes("GET /v1/capabilities", old));
    expect(refused?.status).toBe(401);
    const taken = await rawCall(router.port, callBytes("GET /v1/capabilities", tokens.token(role)));
    expect(taken?.status).toBe(200);
  }
  // As a Kubernetes projection does it.
  await tokens.write("client", "short");
  expect((await submit("broken"))?.body).toContain("router credentials unavailable");
  expect(JSON.parse((await router.internal("/health")).text)).toMatchObject({
    ok: true,
    tokensUsable: false,
  });
  await mkdir(join(directory, "projected"));
  await writeFile(join(directory, "projected", "token"), tokens.token("client"));
  await rm(tokens.path("client"));
  await symlink(join(directory, "projected", "token"), tokens.path("client"));
  expect((await submit("mended"))?.status).toBe(202);
  await router.logged("the tokens can be used again");

  // Five of six: said with the next one, which also fills it.
  expect((await submit("sixth"))?.status).toBe(202);
  await router.logged("the ledger is 80 % full; at its capacity new ids are refused");
  expect((await submit("seventh"))?.body).toContain(
    "ownership capacity exhausted; operator reconciliation required",
  );

  // A discovery token that cannot be used stops discovery alone where that was asked for, and everything where it was not.
  await tokens.write("capability", "short");
  const read = callBytes("GET /v1/executions/a", tokens.token("client"));
  expect([(await rawCall(other.port, read))?.status, (await rawCall(router.port, read))?.status]).toEqual([
    200, 503,
  ]);

  const figures = (await router.internal("/metrics")).text;
  expect(figures).toContain('router_requests_total{route="submit",status="202"} 6\n');
  expect(figures).toContain('router_claims_total{result="new"} 6\n');
  expect(figures).toMatch(
    new RegExp(`^router_backend_healthy{backend="${backend.origin}",node="[^"]+"} 1$`, "m"),
  );
  expect(await router.daemon.stop(60_000)).toEqual({ code: 0, signal: null });
  expect(await other.daemon.stop(60_000)).toEqual({ code: 0, signal: null });
  for (const each of [router, other]) expectNoSecrets(each, metrics, figures);
});

describe("SIGTERM", () => {
  it("stops accepting, and lets what runs end", async () => {
    await using backend = await dispatcher({ tokenFile: tokens.path("backend") });
    await using router = await new RouterProcess([
      ledger(),
      ...tokens.flags,
      `--backends=${backend.origin}`,
    ]).start();
    let release: (value: unknown) => void = () => undefined;
    backend.fault("submit", { kind: "held", until: new Promise((resolve) => (release = resolve)) });
    const answer = rawCall(
      router.port,
      callBytes("POST /v1/executions", tokens.token("client"), executionBytes("held")),
    );
    await backend.received("submit");
    const stopped = router.daemon.stop(60_000);
    await router.logged("stopping");
    // A connection that was made at that moment may still be reset.
    const read = callBytes("GET /v1/executions/held", tokens.token("client"));
    await until("a listener that is closed", () =>
      rawCall(router.port, read).then(
        () => false,
        (error: unknown) => String(error).includes("ECONNREFUSED"),
      ),
    );
    expect((await router.internal("/health")).status).toBe(503);
    release(undefined);
    expect((await answer)?.status).toBe(202);
    expect(await stopped).toEqual({ code: 0, signal: null });
  });

  it("tells a caller whose submission is cut off that its outcome is unknown, and ends with 4", async () => {
    await using backend = await dispatcher({ tokenFile: tokens.path("backend") });
    const args = [ledger(), ...tokens.flags, `--backends=${backend.origin}`, "--shutdown-drain-ms=300"];
    // Nobody takes its port for a call of his own while it is down.
    const host = "127.0.0.6";
    await using router = await new RouterProcess(args, { host }).start();
    backend.fault("submit", { kind: "swallow" });
    const call = callBytes("POST /v1/executions", tokens.token("client"), executionBytes("cut"));
    const answer = rawCall(router.port, call, { host });
    await backend.received("submit");
    const stopped = router.daemon.stop(60_000);
    expect((await answer)?.body).toContain(
      "submission outcome unknown; owner retained; POST will not be replayed",
    );
    expect(await stopped).toEqual({ code: 4, signal: null });

    // The id keeps its owner: the same bytes again become a read.
    await router.start();
    expect((await rawCall(router.port, call, { host }))?.status).toBe(200);
    expect(backend.runs.get("cut")).toBe(1);
    expect(backend.calls.filter(({ call: kind }) => kind === "submit")).toHaveLength(1);
  });
});

it("the capability answer comes although one backend is a black hole", async () => {
  await using one = await dispatcher({ tokenFile: tokens.path("backend") });
  await using hole = await dispatcher({ tokenFile: tokens.path("backend") });
  hole.fault("capabilities", { kind: "black-hole" });
  const backends = `--backends=${hole.origin},${one.origin}`;
  await using router = await new RouterProcess([ledger(), ...tokens.flags, backends]).start();
  // In how much time: capabilities.test.ts. A machine that is busy may take longer than a report may, also the one's that lives.
  const answer = await until("an answer with one report", async () => {
    const { body = "" } =
      (await rawCall(router.port, callBytes("GET /v1/capabilities", tokens.token("capability")))) ?? {};
    return JSON.parse(body).eligibleNodes === 1 && body;
  });
  expect(JSON.parse(answer)).toMatchObject({
    eligibleNodes: 1,
    nodes: [
      { index: 0, reason: "unreachable_unauthorized_or_incompatible" },
      { index: 1, preflightEligible: true },
    ],
  });
});
