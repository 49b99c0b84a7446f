// What the daemon does with its certificate's files. Their reading and watching is tried in @cellkit/daemon.
import { copyFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { createLogger } from "@cellkit/daemon";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { checkRouter, routerOptions, startRouter } from "../src/index.ts";
import { writeTokens } from "./support/router.ts";
import { hasOpenssl, makeSelfSigned } from "./support/self-signed.ts";

let directory: string;
let releases: (() => unknown)[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-certificate-"));
  releases = [];
});
afterEach(async () => {
  for (const release of releases.reverse()) await release();
  await rm(directory, { recursive: true, maxRetries: 10 });
});

function configOf(tls: { tlsCert?: string; tlsKey?: string }) {
  const { client: clientTokenFile, backend: tokenFile } = writeTokens(directory);
  const files = { clientTokenFile, tokenFile, ownershipDir: join(directory, "ledger"), ...tls };
  return routerOptions.parse({
    ...{ backends: "http://127.0.0.1:1", listen: "127.0.0.1:0", fingerprint: false },
    ...files,
  });
}

/** A daemon in this process. @param onDefer hears of each part once it is made */
async function start(
  tls: { tlsCert?: string; tlsKey?: string },
  onDefer: (part: string) => void = () => undefined,
) {
  const config = configOf(tls);
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    name: "router",
    stream: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const signal = new AbortController().signal;
  const defer = (part: string, release: (signal: AbortSignal) => unknown) => {
    releases.push(() => release(signal));
    onDefer(part);
  };
  const rest = { from: {}, requestStop: () => undefined, fail: () => undefined };
  const running = await startRouter({ config, log, signal, defer, ...rest }, "0.0.0");
  releases.push(() => running.stop("the test is over"));
  const ready = lines.find(({ msg }) => msg === "ready");
  return {
    lines,
    port: Number(String(ready?.["listen"]).split(":").at(-1)),
    metrics: async () => (await fetch(`http://${ready?.["internal"]}/metrics`)).text(),
  };
}

describe.runIf(hasOpenssl())("--tls-cert", () => {
  it("a pair that comes while the router starts is in use soon after, and the metrics tell so", async () => {
    const [first, second] = [makeSelfSigned(directory, "first"), makeSelfSigned(directory, "second")];
    const ca = await Promise.all([first, second].map(({ certPath }) => readFile(certPath)));
    // The files are looked at again when the test says.
    const clock = vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    releases.push(() => clock.useRealTimers());
    const router = await start({ tlsCert: first.certPath, tlsKey: first.keyPath }, (part) => {
      // The pair is read before the router is made, and watched after.
      if (part !== "the router") return;
      copyFileSync(second.certPath, first.certPath);
      copyFileSync(second.keyPath, first.keyPath);
    });
    const shown = () =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: "127.0.0.1", port: router.port, ca }).on("error", reject);
        socket.once("secureConnect", () => {
          resolve(socket.getPeerCertificate().subject.CN);
          socket.destroy();
        });
      });
    expect(await shown()).toBe("first");
    vi.advanceTimersByTime(1_000);
    await until("the new pair", () => router.lines.some(({ msg }) => msg === "new certificate in use"));
    expect(await shown()).toBe("second");
    const metrics = await router.metrics();
    for (const line of [
      "router_certificate_reloads_total 1",
      "router_certificate_reload_failures_total 0",
      "router_certificate_reload_failing 0",
    ])
      expect(metrics.split("\n")).toContain(line);
    expect(metrics).toMatch(/^router_certificate_expiry_timestamp_seconds \d{10}$/m);
  });

  it("one that has expired is told at the start, and served", async () => {
    const { certPath, keyPath } = makeSelfSigned(directory, "old");
    const clock = vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3 * 86_400_000 });
    releases.push(() => clock.useRealTimers());
    const router = await start({ tlsCert: certPath, tlsKey: keyPath });
    expect(router.lines.filter(({ level }) => level === "error")).toEqual([
      expect.objectContaining({
        msg: expect.stringMatching(/^the certificate expired at \S+: callers will refuse it$/),
      }),
    ]);
  });

  it.each([
    [0.5, "passed", /^for IP Address:127\.0\.0\.1, until \S+Z$/],
    [10, "warning", /, until \S+Z$/],
    [20.5, "failed", /, until \S+Z: it expired at \S+Z$/],
    [-1, "failed", /, until \S+Z: it is not valid before \S+Z$/],
  ])("%d days into one of 20 days, its check has %s", async (days, verdict, detail) => {
    const { certPath, keyPath } = makeSelfSigned(directory, "checked", 20);
    const clock = vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * 86_400_000 });
    releases.push(() => clock.useRealTimers());
    const results = await checkRouter(configOf({ tlsCert: certPath, tlsKey: keyPath }), { roundCount: 1 });
    expect(results.find(({ name }) => name === "certificate")).toEqual({
      ...{ name: "certificate", verdict },
      detail: expect.stringMatching(detail),
    });
  });

  it("without it there is nothing of a certificate in the metrics", async () => {
    expect(await (await start({})).metrics()).not.toContain("certificate");
  });
});
