// A daemon as a folder that runs wherever there is a Node: its built files and what it depends on, nothing else. It is what a
// container image holds; `npm run check:packages` makes it, moves it and starts it, which no container engine is needed for.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { folderOf } from "./layers.ts";
import { type Manifest, type Package, packages, root, workspaceManifest } from "./workspace.ts";

/** Where a daemon has its container file, within its package. */
export const containerFile = "Containerfile";

/** The packages that are daemons with an image: those with a container file. */
export function daemons(): Package[] {
  return packages().filter(({ path }) => existsSync(join(path, containerFile)));
}

/** A package and all of ours that it needs at run time, by folder name. */
export function closure(folder: string, all: readonly Package[] = packages()): string[] {
  const found = new Set<string>();
  const visit = (name: string): void => {
    const each = all.find((candidate) => candidate.folder === name);
    if (each === undefined || found.has(name)) return;
    found.add(name);
    for (const dependency of Object.keys(each.manifest.dependencies ?? {})) visit(folderOf(dependency) ?? "");
  };
  visit(folder);
  return [...found].sort();
}

/**
 * Packs a daemon, whose packages are built, into a folder that does not exist yet or is empty.
 *
 * pnpm lays out the dependencies that the lock file names, ours as copies of what would be published. What the layout needs
 * no more is taken out again: see {@link tidy}. `bin/<command>` is the one link.
 *
 * @returns the bytes of its files
 * @throws Error when a package is not built, the folder is in use, or pnpm fails; its own words stand in the message
 */
export function packDaemon({ folder, manifest }: Package, target: string): number {
  const missing = closure(folder).filter(
    (each) => !existsSync(join(root, "packages", each, "dist/index.js")),
  );
  if (missing.length > 0)
    throw new Error(`not built: ${missing.join(", ")}; npm run build -- ${missing.join(" ")}`);
  if (existsSync(target) && readdirSync(target).length > 0)
    throw new Error(`${target} is not empty: name a folder that does not exist yet`);
  // Flat, so that no link is needed, and copied, so that no file is shared with the store or with this workspace.
  const layout = ["--config.node-linker=hoisted", "--config.package-import-method=copy"];
  const deploy = [
    "--filter",
    manifest.name,
    "deploy",
    "--prod",
    "--prefer-offline",
    "--ignore-scripts",
    ...layout,
  ];
  const done = spawnSync("npx", ["-y", workspaceManifest().packageManager, ...deploy, target], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, CI: "true" },
  });
  if (done.status !== 0)
    throw new Error(`pnpm deploy of ${manifest.name} failed:\n${done.stdout}${done.stderr}`);
  const bytes = tidy(target);
  mkdirSync(join(target, "bin"));
  for (const [command, main] of Object.entries(manifest.bin ?? {})) {
    chmodSync(join(target, main), 0o755);
    symlinkSync(join("..", main), join(target, "bin", command));
  }
  return bytes;
}

/** TypeScript, which Node never loads below node_modules; declarations; maps, which hold sources. */
const unused = /\.(?:[cm]?ts|map)$/;
/** pnpm's notes about its layout. They name folders of this machine. */
const notes = new Set([
  ".bin",
  ".modules.yaml",
  ".pnpm",
  ".pnpm-workspace-state-v1.json",
  "pnpm-lock.yaml",
  "pnpm-workspace.yaml",
]);

/** Takes out what does not run, cuts our manifests down to what Node reads, and lets every user read what is left. */
function tidy(directory: string): number {
  let bytes = 0;
  chmodSync(directory, 0o755);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (notes.has(entry.name) || (entry.isFile() && unused.test(entry.name))) {
      rmSync(path, { recursive: true });
    } else if (entry.isDirectory()) {
      bytes += tidy(path);
    } else {
      if (entry.name === "package.json") cutManifest(path);
      const { mode, size } = statSync(path);
      chmodSync(path, (mode & 0o111) === 0 ? 0o644 : 0o755);
      bytes += size;
    }
  }
  return bytes;
}

/** Of our own manifests, what Node reads: their dependencies are laid out, and would name folders of this machine. */
function cutManifest(path: string): void {
  const manifest = JSON.parse(readFileSync(path, "utf8")) as Manifest;
  if (folderOf(manifest.name ?? "") === undefined || !existsSync(join(dirname(path), "dist"))) return;
  const { name, version, description, license, type, engines, exports, bin, publishConfig } = manifest;
  const kept = { name, version, description, license, type, engines, bin };
  writeFileSync(
    path,
    `${JSON.stringify({ ...kept, exports: publishConfig?.exports ?? exports }, undefined, 2)}\n`,
  );
}
