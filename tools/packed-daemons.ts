// Shows that what container images hold works: every daemon is packed, moved to another place and looked through, and started there
// with an environment of nothing but PATH and what its trial gives it. No container engine is needed for that.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { DaemonProcess } from "../packages/daemon/src/daemon-process.ts";
import { type Trial, trials } from "./packed-trials.ts";
import { closure, daemons, packDaemon } from "./packing.ts";
import { type Package, packages, root, workspaceManifest } from "./workspace.ts";

/** How long a daemon may take to serve, and to stop. */
const boundMs = 20_000;
/** Larger files are other people's programs: workerd, esbuild. */
const searchedBytes = 4 << 20;
const path = `${dirname(process.execPath)}:/usr/bin:/bin`;

/** Tries every daemon that has an image. @returns the exit code of this check */
export async function tryPackedDaemons(): Promise<number> {
  const work = mkdtempSync(join(tmpdir(), "cellkit-packed-"));
  try {
    let code = 0;
    for (const daemon of daemons()) {
      const problems = await tryDaemon(daemon, work);
      for (const problem of problems) console.error(`${daemon.manifest.name}: ${problem}`);
      if (problems.length > 0) code = 1;
    }
    return code;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Packs, moves and tries one daemon. @returns what is wrong with it */
async function tryDaemon(daemon: Package, work: string): Promise<string[]> {
  const { folder, manifest } = daemon;
  const prepare = trials[folder];
  const [command = ""] = Object.keys(manifest.bin ?? {});
  if (prepare === undefined) return [`has a container file and no trial in tools/packed-trials.ts`];
  const packedAt = join(work, "packed-here", folder);
  const bytes = packDaemon(daemon, packedAt);
  const home = join(work, "moved-there", folder);
  mkdirSync(dirname(home), { recursive: true });
  renameSync(packedAt, home);
  const problems = [...strangers(daemon, home), ...words(home, command, `${command} ${manifest.version}`)];
  if (problems.length > 0) return problems;
  const directory = join(work, `trial-${folder}`);
  mkdirSync(directory);
  const trial = await prepare(directory);
  try {
    problems.push(...(await serve(join(home, "bin", command), trial)));
  } finally {
    await trial.close?.();
  }
  console.log(`packed ${manifest.name}: ${(bytes / 1e6).toFixed(1)} MB`);
  return problems;
}

/** Whatever does not belong into a packed folder. */
function strangers({ folder, manifest }: Package, home: string): string[] {
  const tools = new Set(Object.keys({ ...workspaceManifest().devDependencies, ...manifest.devDependencies }));
  for (const each of packages().filter((one) => closure(folder).includes(one.folder)))
    for (const name of Object.keys(each.manifest.dependencies ?? {})) tools.delete(name);
  return readdirSync(home, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const file = join(entry.parentPath, entry.name);
    const name = relative(home, file);
    if (tools.has(name.replace("node_modules/", ""))) return [`${name} is for development only`];
    if (entry.isSymbolicLink()) {
      const target = resolve(dirname(file), readlinkSync(file));
      return target.startsWith(`${home}/`) ? [] : [`${name} leads out of the folder, to ${target}`];
    }
    if (!entry.isFile()) return [];
    if (/\.(?:[cm]?ts|map)$/.test(name)) return [`${name} is never run`];
    const content = readFileSync(file);
    return content.length <= searchedBytes && content.includes(root) ? [`${name} names ${root}`] : [];
  });
}

/** The two calls that need nothing: `--version` and `--help`. */
function words(home: string, command: string, version: string): string[] {
  return (
    [
      ["--version", (said: string) => said.trim() === version],
      ["--help", (said: string) => said.includes(`${command} `) && said.includes("--listen")],
    ] as const
  ).flatMap(([flag, right]) => {
    const done = spawnSync(join(home, "bin", command), [flag], {
      cwd: "/",
      env: { PATH: path },
      encoding: "utf8",
    });
    return done.status === 0 && right(done.stdout)
      ? []
      : [`${flag} ended with ${done.status ?? done.error?.message}:\n${done.stdout}${done.stderr}`];
  });
}

/** Starts it, asks it, and stops it as Kubernetes does. */
async function serve(program: string, trial: Trial): Promise<string[]> {
  let ready: Record<string, string> | undefined;
  const daemon = new DaemonProcess(program, {
    command: program,
    args: [...trial.args, "--log-format=json"],
    env: { PATH: path, ...trial.env },
    cwd: "/",
    onLine(line) {
      if (line.includes('"msg":"ready"')) ready = JSON.parse(line) as Record<string, string>;
    },
  });
  try {
    await daemon.until("ready", async () => ready !== undefined, boundMs);
    const { status, body } = await ask(ready?.[trial.listener] ?? "", trial.ask);
    const { code, signal } = await daemon.stop(boundMs);
    return [
      ...(status === trial.answer.status && trial.answer.body.test(body)
        ? []
        : [`${trial.ask.path} was answered ${status}: ${body}`]),
      ...(code === 0 ? [] : [`SIGTERM ended it with ${code ?? signal}:\n${daemon.lastLines.join("\n")}`]),
    ];
  } finally {
    await daemon.kill();
  }
}

/** A GET, whose answer is read as text. */
function ask(
  address: string,
  { path, headers, ca }: Trial["ask"],
): Promise<{ status: number; body: string }> {
  const options = { headers: { ...headers }, agent: false, timeout: boundMs } as const;
  return new Promise((resolve, reject) => {
    const request =
      ca === undefined
        ? httpRequest(`http://${address}${path}`, options)
        : httpsRequest(`https://${address}${path}`, { ...options, ca });
    request.on("timeout", () => request.destroy(new Error(`${path} was not answered in ${boundMs} ms`)));
    request.on("error", reject);
    request.on("response", (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    request.end();
  });
}
