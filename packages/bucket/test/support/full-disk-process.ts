// Fills the small file system at DIRECTORY and prints what happened: full-disk-process.ts DIRECTORY
import { pathToFileURL } from "node:url";
import { openBucket } from "../../src/index.ts";
import { serveBucket } from "../../src/server/index.ts";

const [directory = ""] = process.argv.slice(2);
const credentials = { accessKeyId: "AKIATEST", secretAccessKey: "a-secret-for-a-test" };
const failures: string[] = [];
const server = await serveBucket({
  directory: `${directory}/bucket`,
  credentials,
  onFailure: (error) => failures.push((error as Error & { code: string }).code),
});
const remote = openBucket("s3://cells", { endpoint: server.endpoint, credentials });
const local = openBucket(pathToFileURL(`${directory}/bucket`).href);
const body = (key: string) => key.repeat(10_000);
const codeOf = (error: unknown) => String((error as { code?: unknown }).code ?? error);

const acknowledged: string[] = [];
let remoteCode = "";
for (let index = 0; remoteCode === "" && index < 1000; index += 1) {
  const key = `k${String(index).padStart(3, "0")}`;
  try {
    if ((await remote.createIfAbsent(key, body(key))).kind === "applied") acknowledged.push(key);
  } catch (error) {
    remoteCode = codeOf(error);
  }
}
const localCode = await local.put("more", body("more")).then(() => "", codeOf);
let whole = 0;
for (const key of acknowledged) {
  const object = await local.get(key);
  if (object !== undefined && Buffer.from(object.body).toString() === body(key)) whole += 1;
}
const listed: string[] = [];
for await (const { key } of local.list("")) listed.push(key);
await remote.delete(acknowledged[0] ?? "");
await remote.delete(acknowledged[1] ?? "");
const afterwards = (await remote.createIfAbsent("again", body("x"))).kind;
await Promise.all([remote.close(), local.close()]);
await server.close();
process.stdout.write(
  `${JSON.stringify({ acknowledged: acknowledged.length, whole, listed: listed.length, remoteCode, localCode, afterwards, failures })}\n`,
);
