import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RouterProcess } from "../support/router-process.ts";
import { helm, only, render, userValues } from "./support/helm.ts";
import { deploymentSpec } from "./support/kubernetes.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
let root = "";

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "cellkit-router-chart-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

describe.skipIf(helm === undefined)("the command line that the chart renders", () => {
  it("passes its trial without a token or a ledger, and ends", async () => {
    const { trial } = await containers();
    const { code, stdout } = await run(trial.args);
    expect(code).toBe(0);
    expect(stdout).toContain("http://dispatcher-a:8787");
  });

  it("fails its trial in an image that does not know one of the flags", async () => {
    const { trial } = await containers();
    const { code, stderr } = await run([...trial.args, "--flag-of-a-later-router"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--flag-of-a-later-router");
  });

  it("starts a router that answers the probes where they ask, and stops within the grace period", async () => {
    const { router, graceSeconds } = await containers();
    for (const role of ["client", "backend", "capability"]) {
      await mkdir(join(root, "celln", role), { recursive: true });
      await writeFile(join(root, "celln", role, "token"), `${role}-token-for-a-chart-1234`);
    }
    const args = router.args
      .filter((arg) => !/^--(listen|internal-listen|log-level)=/.test(arg))
      .map((arg) => arg.replace("=/etc/celln/", `=${root}/celln/`).replace("=/var/lib/", `=${root}/`));
    await using process = await new RouterProcess(args).start();
    const probes = [router.startupProbe, router.readinessProbe];
    for (const probe of probes) {
      expect(probe?.httpGet.port).toBe("internal");
      expect(await process.internal(probe?.httpGet.path ?? "")).toMatchObject({ status: 200 });
    }
    expect(Number(/--shutdown-drain-ms=(\d+)/.exec(args.join(" "))?.[1] ?? 25_000)).toBeLessThan(
      1_000 * (graceSeconds - 5),
    );
    process.daemon.signal("SIGTERM");
    expect(await process.daemon.exited).toMatchObject({ code: 0 });
  });
});

async function containers() {
  const { spec } = deploymentSpec(only(await render(userValues()), "Deployment")).template;
  const [trial] = spec.initContainers;
  const [router] = spec.containers;
  if (trial === undefined || router === undefined) throw new TypeError("a container is missing");
  return { trial, router, graceSeconds: spec.terminationGracePeriodSeconds };
}

function run(args: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const command = ["--conditions=@cellkit/source", main, ...args];
    execFile(process.execPath, command, { env: { PATH: process.env["PATH"] } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, stdout, stderr });
    });
  });
}
