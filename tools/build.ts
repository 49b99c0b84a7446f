// `npm run build [-- FOLDER ...]`: tsup in each package, two at a time, each after those that it depends on: their built
// types are what its own types are made from.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { folderOf } from "./layers.ts";
import { run } from "./processes.ts";
import { type Package, packages } from "./workspace.ts";

const only = process.argv.slice(2);
const wanted = packages().filter(
  ({ folder, path }) =>
    existsSync(join(path, "tsup.config.ts")) && (only.length === 0 || only.includes(folder)),
);
const built = new Map<string, Promise<boolean>>();
let free = 2;
const waiting: (() => void)[] = [];

/** Builds a package once all that it depends on is built; answers whether that went well. */
function build(each: Package): Promise<boolean> {
  const known = built.get(each.folder);
  if (known !== undefined) return known;
  const before = wanted.filter(({ folder }) => dependencies(each).includes(folder));
  const result = Promise.all(before.map(build)).then(async (good) => {
    if (!good.every(Boolean)) {
      console.log(`not built: ${each.manifest.name}, since one that it depends on was not`);
      return false;
    }
    while (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    free -= 1;
    const code = await run("tsup", ["--silent"], { cwd: each.path });
    free += 1;
    waiting.shift()?.();
    console.log(`${code === 0 ? "built" : "FAILED"} ${each.manifest.name}`);
    return code === 0;
  });
  built.set(each.folder, result);
  return result;
}

function dependencies({ manifest }: Package): string[] {
  return Object.keys(manifest.dependencies ?? {}).flatMap((name) => folderOf(name) ?? []);
}

const good = await Promise.all(wanted.map(build));
process.exit(good.every(Boolean) ? 0 : 1);
