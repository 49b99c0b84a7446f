// `npm run build [-- FOLDER ...]`: tsup in each package, two at a time.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { run } from "./processes.ts";
import { packages } from "./workspace.ts";

const only = process.argv.slice(2);
const queue = packages().filter(
  ({ folder, path }) =>
    existsSync(join(path, "tsup.config.ts")) && (only.length === 0 || only.includes(folder)),
);
let failed = 0;

async function worker(): Promise<void> {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const code = await run("tsup", ["--silent"], { cwd: next.path });
    console.log(`${code === 0 ? "built" : "FAILED"} ${next.manifest.name}`);
    if (code !== 0) failed += 1;
  }
}

await Promise.all([worker(), worker()]);
process.exit(failed === 0 ? 0 : 1);
