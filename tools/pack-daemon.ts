// `npm run pack-daemon -- FOLDER TARGET`: builds a daemon of this workspace and packs it into TARGET, which runs wherever there
// is a Node. What packages/*/Containerfile calls.
import { join, resolve } from "node:path";
import { closure, daemons, packDaemon } from "./packing.ts";
import { run } from "./processes.ts";
import { root } from "./workspace.ts";

const [folder, target] = process.argv.slice(2);
const daemon = daemons().find((each) => each.folder === folder);
if (daemon === undefined || target === undefined) {
  const names = daemons().map((each) => each.folder);
  console.error(`npm run pack-daemon -- FOLDER TARGET; FOLDER is one of: ${names.join(", ")}`);
  process.exit(2);
}
const built = await run(process.execPath, [join(root, "tools/build.ts"), ...closure(daemon.folder)]);
if (built !== 0) process.exit(built);
const bytes = packDaemon(daemon, resolve(target));
console.log(`packed ${daemon.manifest.name} into ${target}: ${(bytes / 1e6).toFixed(1)} MB`);
