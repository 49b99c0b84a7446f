// Serves a directory and prints the endpoint: server-process.ts DIRECTORY ACCESS_KEY SECRET
import { serveBucket } from "../../src/server/index.ts";

const [directory = "", accessKeyId = "", secretAccessKey = ""] = process.argv.slice(2);
const server = await serveBucket({ directory, credentials: { accessKeyId, secretAccessKey } });
process.stdout.write(`${JSON.stringify(server.endpoint)}\n`);
