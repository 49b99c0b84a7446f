// What a process writes of itself when it is asked to, or dies: Node's diagnostic reports, its output and its figures have no token
// and nothing of a key, though all of them are in use at that moment.
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { executionBytes } from "./support/execution-request.ts";
import { RouterProcess, TokenFiles } from "./support/router-process.ts";
import { hasOpenssl, makeSelfSigned } from "./support/self-signed.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-secrets-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Loaded before the daemon, to break it on SIGWINCH. The daemon's own handler would log an error that nobody caught, and end. */
const breaks = {
  uncaught: `process.removeAllListeners("uncaughtException"); throw new TypeError("broken by a test")`,
  "out of memory": `const kept = []; for (;;) kept.push(new Array(100_000).fill(kept.length))`,
};

/** Ways to die, and what their reports say of themselves. */
const deaths: readonly (readonly [keyof typeof breaks, string])[] = [
  ["uncaught", "Exception"],
  ...(inject("size") === "long" ? ([["out of memory", "OOMError"]] as const) : []),
];

function nodeOptions(death: keyof typeof breaks): string {
  const module = `process.on("SIGWINCH", () => { ${breaks[death]} });`;
  return [
    `--import=data:text/javascript,${encodeURIComponent(module)}`,
    "--report-on-signal --report-uncaught-exception --report-on-fatalerror",
    `--report-directory=${directory}`,
    "--max-old-space-size=100",
  ].join(" ");
}

/** The reports so far, once there are as many as expected and each is whole. */
function reports(count: number): Promise<string[]> {
  return until(`${count} reports`, async () => {
    const names = (await readdir(directory)).filter((name) => name.startsWith("report."));
    const texts = await Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
    return texts.length === count && texts.every((text) => text.trimEnd().endsWith("}")) && texts;
  });
}

describe.runIf(hasOpenssl())("no token and nothing of the TLS key", () => {
  it.each(deaths)("is in a report, in the output or in the metrics: %s", async (death, trigger) => {
    const tokens = await TokenFiles.create(join(directory, "tokens"));
    const { certPath, keyPath } = makeSelfSigned(directory, "router");
    await using backend = await dispatcher({ tokenFile: tokens.path("backend") });
    const places = [`--ownership-dir=${join(directory, "ledger")}`, `--backends=${backend.origin}`];
    const tls = [`--tls-cert=${certPath}`, `--tls-key=${keyPath}`];
    await using router = await new RouterProcess([...tokens.flags, ...places, ...tls], {
      env: { NODE_OPTIONS: nodeOptions(death) },
    }).start();
    const ca = await readFile(certPath);
    const answers: string[] = [];
    const call = (line: string, token: string, body?: Buffer) =>
      new Promise<number | undefined>((resolve, reject) => {
        const [method, path] = line.split(" ");
        const headers = { authorization: `Bearer ${token}`, "content-length": body?.length ?? 0 };
        request(
          { ca, port: router.port, host: "127.0.0.1", method, path, headers, agent: false },
          (answer) => {
            answer.on("data", (chunk: Buffer) => void answers.push(String(chunk)));
            answer.on("end", () => resolve(answer.statusCode)).on("error", reject);
          },
        )
          .on("error", reject)
          .end(body);
      });

    expect(await call("POST /v1/executions", tokens.token("client"), executionBytes("a"))).toBe(202);
    expect(await call("GET /v1/capabilities", tokens.token("capability"))).toBe(200);
    const wrong = "a-token-that-nobody-was-given";
    expect(await call("GET /v1/executions/a", wrong)).toBe(401);
    for (const role of ["backend", "client", "capability"]) await tokens.rotate(role);
    expect(await call("POST /v1/executions", tokens.token("client"), executionBytes("b"))).toBe(202);

    // One call is at the dispatcher while the process writes of itself, and while it dies.
    backend.fault("submit", { kind: "swallow" });
    const cut = expect(
      call("POST /v1/executions", tokens.token("client"), executionBytes("c")),
    ).rejects.toMatchObject({ code: "ECONNRESET" });
    await backend.received("submit");
    router.daemon.signal("SIGUSR2");
    const [asked = ""] = await reports(1);
    answers.push((await router.internal("/metrics")).text);
    router.daemon.signal("SIGWINCH");
    await router.daemon.exited;
    await cut;
    const died = (await reports(2)).find((text) => text !== asked) ?? "";

    // They are reports of this process, whole, with what they are made for.
    expect(JSON.parse(asked).header).toMatchObject({ trigger: "Signal", event: "SIGUSR2" });
    expect(JSON.parse(died).header.trigger).toBe(trigger);
    for (const report of [asked, died]) expect(report).toContain(tokens.path("client"));
    expect(router.lines.join("\n")).toContain("Writing Node.js report to file");
    const everything = [...router.lines, ...answers, asked, died].join("\n");
    const key = (await readFile(keyPath, "utf8")).split("\n").filter((line) => /^[\w+/=]{16,}$/.test(line));
    expect(key.length).toBeGreaterThan(1);
    for (const secret of [...tokens.all, wrong, ...key]) expect(everything).not.toContain(secret);
    expect(tokens.all.size).toBe(6);
  });
});
