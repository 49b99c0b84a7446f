// Starts a task of this workspace on the pinned Node, whatever Node the machine has (20 or later).
// It installs the workspace first when the lock file changed since the last install.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const bin = join(root, "node_modules", ".bin");
const tasks = {
  api: ["tools/packages.ts", "--api"],
  bench: ["tools/bench.ts"],
  build: ["tools/build.ts"],
  check: ["tools/check.ts"],
  "check:packages": ["tools/packages.ts"],
  demo: ["examples/demo/src/main.ts"],
  format: ["tools/format.ts"],
  "pack-daemon": ["tools/pack-daemon.ts"],
  test: ["tools/test.ts", "sample"],
  "test:long": ["tools/test.ts", "long"],
};

const [name, ...args] = process.argv.slice(2);
const task = name === undefined ? undefined : tasks[name];
if (task === undefined) {
  console.error(`unknown task ${name ?? "(none)"}; one of: ${Object.keys(tasks).join(", ")}`);
  process.exit(2);
}

install();
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` };
const child = spawn(
  pinnedNode(),
  ["--conditions=@cellkit/source", "--disable-warning=ExperimentalWarning", ...task, ...args],
  { cwd: root, env, stdio: "inherit" },
);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`could not start ${name}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));

/** Installs with the frozen lock when it differs from the one that was installed last. */
function install() {
  const hash = createHash("sha256");
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json"]) {
    hash.update(readFileSync(join(root, file)));
  }
  const wanted = hash.digest("hex");
  const marker = join(root, "node_modules", ".cellkit-installed");
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return;
  process.stderr.write("installing the workspace (about half a minute the first time) ...\n");
  const version = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).packageManager;
  const done = spawnSync("npx", ["-y", version, "install", "--frozen-lockfile", "--reporter=append-only"], {
    cwd: root,
    env: { ...process.env, CI: "true" },
    stdio: ["ignore", 2, 2],
  });
  if (done.status !== 0) {
    process.stderr.write("the install failed; its own words stand above\n");
    process.exit(done.status ?? 1);
  }
  writeFileSync(marker, wanted);
}

/** The workspace's own Node where npm has a binary for this platform, else the machine's if it is new enough. */
function pinnedNode() {
  const pinned = join(root, "node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
  if (existsSync(pinned)) return pinned;
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath;
  console.error(
    `no Node binary for ${process.platform}-${process.arch} is on npm, and this one is ${process.version}: ` +
      "install Node 22.19 or later and run the command again",
  );
  return process.exit(1);
}
