// Asks the pinned workerd which compatibility flags it has. It lists them nowhere, but names each one that it does not have:
// so it is given everything in its binary that looks like a flag, and what it does not complain about is one.
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the runtime knows. */
export interface RuntimeFlags {
  /** Of the npm package. */
  version: string;
  newestDate: string;
  /** Flags that contradict each other, or one alone, in the order of the alphabet. */
  groups: string[][];
}

const boundMs = 60_000;

/** Needs the pinned binary for this machine. */
export async function askWorkerd(): Promise<RuntimeFlags> {
  const wrapper = createRequire(import.meta.url).resolve("workerd/package.json");
  const { version } = JSON.parse(await readFile(wrapper, "utf8")) as { version: string };
  const arch = process.arch === "x64" ? "64" : process.arch;
  const binary = createRequire(wrapper).resolve(
    `@cloudflare/workerd-${process.platform}-${arch}/bin/workerd`,
  );
  const text = (await readFile(binary)).toString("latin1");
  const words = [...new Set(text.match(/(?<=\0)[a-z0-9_]{2,128}(?=\0)/g))].sort();

  const said = await complaints(binary, "2999-01-01", words);
  const unknown = new Set([...said.matchAll(/No such compatibility flag: (\w+)/g)].map(([, flag]) => flag));
  const pairs = [...said.matchAll(/mutually contradictory: (\w+) vs (\w+)/g)].map(([, ...pair]) =>
    pair.sort(),
  );
  const paired = new Set(pairs.flat());
  const alone = words.filter((word) => !unknown.has(word) && !paired.has(word));
  return {
    version,
    newestDate: /newest date supported by this server binary is "([\d-]+)"/.exec(said)?.[1] ?? "",
    groups: [...pairs, ...alone.map((flag) => [flag])].sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  };
}

/** What workerd says about a Worker with this date and these flags. */
async function complaints(binary: string, date: string, flags: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-flags-"));
  try {
    const config = join(directory, "config.capnp");
    const worker = `(modules = [(name = "m", esModule = "export default {}")], compatibilityDate = ${JSON.stringify(date)}, compatibilityFlags = ${JSON.stringify(flags)})`;
    await writeFile(
      config,
      `using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = (services = [(name = "main", worker = ${worker})]);\n`,
    );
    return spawnSync(binary, ["serve", "--experimental", config], {
      encoding: "utf8",
      timeout: boundMs,
      maxBuffer: 64 * 1024 * 1024,
    }).stderr;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
