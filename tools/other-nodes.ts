// The oldest and the newest Node that the packages promise to run on (`engines`); `npm run test:long` runs the suite on them.
// They are pinned in a lock file of their own, so that nobody who only runs the demo or `npm test` downloads them.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./processes.ts";

const home = fileURLToPath(new URL("./nodes", import.meta.url));

/** One further Node, and the environment in which every `node` is this one. */
export interface OtherNode {
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Installs them and says where they are; one that npm does not have for this platform is told and left out. */
export async function otherNodes(): Promise<OtherNode[]> {
  const code = await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: home });
  if (code !== 0) throw new Error(`npm ci in tools/nodes ended with ${code}: its own words stand above`);
  return [
    ["22", "22.19.0"],
    ["26", "26.10.0"],
  ].flatMap(([major = "", version = ""]) => {
    const bin = join(home, "node_modules", `node-${major}-${process.platform}-${process.arch}`, "bin");
    if (existsSync(join(bin, "node"))) {
      return [{ version, env: { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` } }];
    }
    console.log(
      `not run on Node ${version}: npm has no binary of it for ${process.platform}-${process.arch}`,
    );
    return [];
  });
}
