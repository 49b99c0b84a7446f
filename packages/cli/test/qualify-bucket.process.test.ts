import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openBucket } from "@cellkit/bucket";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Command, run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
});
afterAll(() => directory.remove());

const urlOf = (folder: string) => pathToFileURL(join(directory.path, folder)).href;

it("qualifies a bucket that keeps its conditions, and leaves it empty", async () => {
  const { code, stdout, stderr } = await run(["qualify", "bucket", urlOf("good"), "--rounds", "3"]);
  expect([code, stderr]).toEqual([0, []]);
  expect(stdout).toEqual([
    expect.stringMatching(/^qualified: file:\/\/\/\S+, 6 races of 8 writers in [\d.]+ s$/),
  ]);
  await using bucket = openBucket(urlOf("good"));
  for await (const { key } of bucket.list("")) expect.fail(`${key} was left behind`);
});

it("prints all that it found as JSON", async () => {
  const flags = ["--json", "--rounds", "2", "--writers", "4", "--prefix", "a/b"];
  const { code, stdout } = await run(["qualify", "bucket", urlOf("json"), ...flags]);
  expect(code).toBe(0);
  expect(stdout.map((line) => JSON.parse(line))).toMatchObject([
    {
      verdict: "qualified",
      problems: [],
      writerCount: 4,
      races: { create: { counts: { "one-winner": 2 } } },
    },
  ]);
});

it("fails a store that takes conditions and keeps none, and says in what", async () => {
  const server = createServer(keepNoCondition());
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const env = {
    S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
  };
  const { code, stdout } = await run(["qualify", "bucket", "s3://cells", "--rounds", "2"], env);
  server.close();
  expect(code).toBe(1);
  expect(stdout[0]).toMatch(/^NOT qualified: s3:\/\/cells, /);
  expect(stdout).toContain("violated: several winners in 2 of 2 rounds of create");
});

it("cannot tell of a store that is away, nor of nothing; neither is a failure of the store", async () => {
  const env = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
  const flags = ["--endpoint", "http://127.0.0.1:1"];
  const away = await run(["qualify", "bucket", "s3://cells", ...flags], env);
  expect(away.code).toBe(2);
  expect(away.stdout[0]).toMatch(/^could not tell: /);
  expect((await run(["qualify", "bucket"])).code).toBe(2);
  expect((await run(["qualify", "bucket", urlOf("few"), "--writers", "1"])).code).toBe(2);
});

it("ends at a signal", async () => {
  const command = new Command(["qualify", "bucket", urlOf("signal"), "--rounds", "10000"]);
  await using bucket = openBucket(urlOf("signal"));
  await command.process.until(
    "began to write",
    async () => {
      for await (const _ of bucket.list("cellkit-qualification/")) return true;
      return false;
    },
    120_000,
  );
  command.process.signal("SIGINT");
  expect((await command.outcome()).code).toBe(130);
  for await (const { key } of bucket.list("")) expect.fail(`${key} was left behind`);
  // What makes the directory a bucket, after a whole run as after this one.
  const names = (await readdir(join(directory.path, "signal"))).sort();
  expect(names).toEqual(["cellkit-bucket.json", "locks", "objects", "staging", "uploads"]);
  expect((await readdir(join(directory.path, "good"))).sort()).toEqual(names);
});

it.each(["s3://user:hunter2@cells", "file://user:hunter2@host/x", "s3://cells/x?secret=hunter2"])(
  "%s is refused, and nothing is shown that may be a password",
  async (url) => {
    const { code, stdout, stderr } = await run(["qualify", "bucket", url]);
    expect(code).toBe(2);
    expect([...stdout, ...stderr].join()).not.toContain("hunter2");
  },
);

/** The least of an S3 server that answers every write with success. */
function keepNoCondition(): Parameters<typeof createServer>[1] & {} {
  const objects = new Map<string, Buffer>();
  return (request, response) => {
    const key = request.url?.split("?", 1)[0] ?? "";
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const found = objects.get(key);
      if (request.method === "PUT") {
        objects.set(key, Buffer.concat(chunks));
        response.writeHead(200, { etag: '"one for all"' }).end();
      } else if (request.method === "DELETE") {
        objects.delete(key);
        response.writeHead(204).end();
      } else if (request.url?.includes("list-type") === true) {
        response.writeHead(501).end("<Error><Code>NotImplemented</Code></Error>");
      } else if (found === undefined) {
        response.writeHead(404).end("<Error><Code>NoSuchKey</Code></Error>");
      } else response.writeHead(200, { etag: '"one for all"' }).end(found);
    });
  };
}
