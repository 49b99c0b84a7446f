import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openBucket } from "@cellkit/bucket";
import { type BucketServer, serveBucket } from "@cellkit/bucket/server";
import { readDeployment } from "@cellkit/deployment";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

const credentials = { accessKeyId: "deploy-test", secretAccessKey: "only-for-tests" };

let directory: TemporaryDirectory;
let store: BucketServer;
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
  store = await serveBucket({ directory: join(directory.path, "store"), credentials });
});
afterAll(async () => {
  await store.close();
  await directory.remove();
});

/** The environment of the served bucket. */
const onStore = () => ({
  CELLD_BUCKET: `s3://${store.bucketName}/fleet`,
  S3_ENDPOINT: store.endpoint,
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
});
const fileBucket = (folder: string) => pathToFileURL(join(directory.path, folder)).href;

it("deploys to a directory: data on stdout, words for people on stderr, and a second time changes nothing", async () => {
  const project = await directory.project("plain", "hello");
  const args = ["deploy", project, "--bucket", fileBucket("plain-bucket")];
  const first = await run(args);
  expect(first).toEqual({
    code: 0,
    stdout: [expect.stringMatching(/^counter [0-9a-f]{16}$/)],
    stderr: [
      `bundling ${project}`,
      expect.stringMatching(/^writing 1 module, \d+ kB, to file:/),
      "nodes that run something already adopt it when they are restarted",
    ],
  });
  const second = await run([...args, "--json"]);
  const { scriptName, version, created } = JSON.parse(second.stdout.join("\n"));
  expect(`${scriptName} ${version}`).toBe(first.stdout[0]);
  expect({ code: second.code, created }).toEqual({ code: 0, created: false });
  const bucket = openBucket(fileBucket("plain-bucket"));
  expect(await readDeployment(bucket)).toMatchObject({ scriptName, version });
  await bucket.close();
});

it("deploys the project of the working directory to a served bucket, and warns of each key without effect", async () => {
  const project = await directory.project("warns", "hello", {
    observability: { enabled: true },
    routes: ["example.com/*"],
    dev: { port: 8787 },
    placement: { mode: "smart" },
  });
  const { code, stderr } = await run(["deploy"], onStore(), project);
  expect(code).toBe(0);
  expect(stderr.filter((line) => line.startsWith("warning: "))).toEqual(
    ["observability", "routes", "dev", "placement"].map((key) =>
      expect.stringMatching(new RegExp(`^warning: ${key} is ignored: `)),
    ),
  );
});

it("a script of another name is refused, and replaced where that is asked for", async () => {
  const env = { CELLD_BUCKET: fileBucket("two-scripts") };
  const first = await directory.project("first", "hello");
  const other = await directory.project("other", "hello", { name: "other" });
  expect((await run(["deploy", first], env)).code).toBe(0);
  expect(await run(["deploy", other], env)).toMatchObject({
    code: 1,
    stdout: [],
    stderr: expect.arrayContaining([
      expect.stringMatching(/^cellkit deploy: this fleet runs the script counter, .* \(--replace-script\)$/),
    ]),
  });
  expect(await run(["deploy", other, "--replace-script"], env)).toMatchObject({
    code: 0,
    stdout: [/^other /],
  });
});

describe("one line says what to do about", () => {
  it.each<{ what: string; changes?: object; source?: string; env?: object; code: number; line: RegExp }>([
    {
      what: "an unsupported binding",
      changes: { kv_namespaces: [] },
      code: 2,
      line: /wrangler\.jsonc: kv_namespaces is not supported; supported are durable_objects/,
    },
    {
      what: "an unknown key",
      changes: { colour: "red" },
      code: 2,
      line: /wrangler\.jsonc: colour is not a known key; remove it$/,
    },
    {
      what: "a compatibility flag that the nodes do not have",
      changes: { compatibility_flags: ["nodejs_compatible"] },
      code: 2,
      line: /nodejs_compatible is not a flag of the runtime; the nearest is nodejs_compat$/,
    },
    {
      what: "a class of a name that a node needs",
      changes: { migrations: [{ tag: "v1", new_sqlite_classes: ["Counter", "CellkitPublic"] }] },
      code: 2,
      line: /a class of cells cannot be named CellkitPublic, which a node needs for itself: rename it$/,
    },
    {
      what: "a Worker that does not compile",
      source: "export default {\n  fetch() { return new Response( };\n};\n",
      code: 1,
      line: /^cellkit deploy: the Worker counter cannot be bundled: src\/worker\.js:2:34 Unexpected "}"$/,
    },
    {
      what: "a store that does not answer",
      env: { S3_ENDPOINT: "http://127.0.0.1:1" },
      code: 1,
      line: /gave no answer at the endpoint http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\); check the endpoint and that the store runs$/,
    },
    {
      what: "wrong credentials",
      env: { AWS_SECRET_ACCESS_KEY: "another-one" },
      code: 1,
      line: /denied access \(SignatureDoesNotMatch\); check the credentials and their permissions$/,
    },
    {
      what: "no credentials",
      env: {
        AWS_ACCESS_KEY_ID: undefined,
        AWS_SECRET_ACCESS_KEY: undefined,
        AWS_EC2_METADATA_DISABLED: "true",
      },
      code: 1,
      line: /denied access \(no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\)/,
    },
    {
      what: "a bucket that does not exist",
      env: { CELLD_BUCKET: "s3://elsewhere" },
      code: 1,
      line: /bucket s3:\/\/elsewhere does not exist; create it or correct the URL$/,
    },
    {
      what: "a bucket URL that is none",
      env: { CELLD_BUCKET: "gs://cells" },
      code: 2,
      line: /^cellkit deploy: CELLD_BUCKET "gs:\/\/cells": fleets keep their cells on S3 stores only/,
    },
    {
      what: "a bucket that was not named",
      env: { CELLD_BUCKET: undefined },
      code: 2,
      line: /^cellkit deploy: --bucket: is required \(or set CELLD_BUCKET\)/,
    },
  ])("$what, with code $code", async ({ changes, source, env, code, line }) => {
    const project = await directory.project("wrong", "hello", changes);
    if (source !== undefined) await directory.write("wrong/src/worker.js", source);
    const outcome = await run(["deploy", project], { ...onStore(), ...env });
    const problems = outcome.stderr.filter((text) => !/^(bundling|writing|Run `)/.test(text));
    expect(problems).toEqual([expect.stringMatching(line)]);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code, stdout: [] });
  });

  it("a directory without a project, with code 2", async () => {
    const { code, stderr } = await run(["deploy", directory.path], onStore());
    expect(stderr.slice(1)).toEqual([
      expect.stringMatching(
        /has no wrangler\.jsonc or wrangler\.json: name the directory of a Wrangler project$/,
      ),
    ]);
    expect(code).toBe(2);
  });
});
