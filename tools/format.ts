// `npm run format`: formats and fixes what Biome can fix safely.
import { run } from "./processes.ts";

process.exit(await run("biome", ["check", "--write", ...process.argv.slice(2)]));
