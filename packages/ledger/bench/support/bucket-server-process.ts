// Serves a directory as a bucket, for benchmarks: bucket-server-process.ts DIRECTORY ACCESS_KEY SECRET. Prints its endpoint; ends with its input.
import { serveBucket } from "@cellkit/bucket/server";

const [directory = "", accessKeyId = "", secretAccessKey = ""] = process.argv.slice(2);
const server = await serveBucket({ directory, credentials: { accessKeyId, secretAccessKey } });
process.stdout.write(`${server.endpoint}\n`);
process.stdin.resume().once("end", () => process.exit(0));
