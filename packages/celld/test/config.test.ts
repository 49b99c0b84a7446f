import { ConfigError, parseConfig } from "@cellkit/daemon";
import { describe, expect, it } from "vitest";
import { type CelldConfig, celldOptions } from "../src/config.ts";
import { otherVariables } from "../src/environment.ts";

type Environment = Record<string, string>;

function parse(argv: string[], env: Environment = {}) {
  return parseConfig(celldOptions, {
    name: "cellkit-celld",
    version: "1.2.3",
    description: "A node.",
    argv,
    env,
    envPrefix: "CELLD_",
    otherVariables,
    helpWhenBare: true,
  });
}

function configOf(argv: string[], env?: Environment): CelldConfig {
  const parsed = parse(argv, env);
  if (parsed.kind !== "config") throw new TypeError(`expected a configuration, not ${parsed.kind}`);
  return parsed.config;
}

/** What is wrong, as `where: message` lines. */
function problemsOf(argv: string[], env?: Environment): string[] {
  try {
    parse(argv, env);
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map(({ where, message }) => `${where}: ${message}`);
    throw error;
  }
  return [];
}

const onBucket = (...more: string[]) => ["--bucket", "s3://cells", ...more];
const internal = ["--internal-listen", "10.0.0.7:8081"];

describe("defaults", () => {
  it("are those of the original where it has them", () => {
    expect(configOf(onBucket())).toMatchObject({
      bucket: "s3://cells",
      region: "us-east-1",
      listen: { host: "127.0.0.1", port: 8080 },
      internalListen: { host: "127.0.0.1", port: 0 },
      unsafePublicAdvertise: false,
      shutdownDrainMs: 25_000,
      logLevel: "info",
    });
  });

  it("give the node a name of its own that is a peer's identity", () => {
    expect(configOf(onBucket()).node).toMatch(/^[A-Za-z0-9_.-]{1,128}$/);
  });

  it("nothing at all is told with the help; something of ours is not", () => {
    expect(() => parse([])).toThrow(
      expect.objectContaining({ exitCode: 2, help: expect.stringMatching(/^Usage: cellkit-celld /) }),
    );
    expect(() => parse([], { CELLD_NODE: "a" })).toThrow(expect.objectContaining({ help: undefined }));
    expect(problemsOf([], { CELLD_NODE: "a" })[0]).toMatch(/^--bucket: is required \(or set CELLD_BUCKET\)/);
  });
});

describe("the environment", () => {
  it.each<[Environment, Partial<CelldConfig>]>([
    [{ CELLD_BUCKET: "cells/prod" }, { bucket: "s3://cells/prod" }],
    [{ S3_ENDPOINT: "http://127.0.0.1:9000" }, { endpoint: "http://127.0.0.1:9000" }],
    [{ AWS_REGION: "eu-central-1", AWS_DEFAULT_REGION: "us-west-2" }, { region: "eu-central-1" }],
    [{ AWS_DEFAULT_REGION: "us-west-2" }, { region: "us-west-2" }],
    [{ CELLD_ADDR: "127.0.0.1:9999" }, { listen: { host: "127.0.0.1", port: 9999 } }],
    [{ CELLD_INTERNAL_ADDR: "[::1]:8081" }, { internalListen: { host: "::1", port: 8081 } }],
    [
      { CELLD_INTERNAL_ADDR: "0.0.0.0:8081", CELLD_ADVERTISE: "a-0.a.svc:8081" },
      { advertise: { host: "a-0.a.svc", port: 8081 } },
    ],
    [{ CELLD_UNSAFE_PUBLIC_ADVERTISE: "1" }, { unsafePublicAdvertise: true }],
    [{ CELLD_NODE: "node_1.a-b" }, { node: "node_1.a-b" }],
    [{ CELLD_WATCH: "/var/lib/celld" }, { watch: "/var/lib/celld" }],
    [{ CELLD_SECRETS_FILE: "/etc/secrets" }, { secretsFile: "/etc/secrets" }],
    [{ CELLD_VARS_FILE: "/etc/celld/vars/vars.env" }, { varsFile: "/etc/celld/vars/vars.env" }],
    [{ CELLD_SHUTDOWN_DRAIN_MS: "40000" }, { shutdownDrainMs: 40_000 }],
    [{ CELLD_ADDR: "", CELLD_NODE: "n", CELLD_WATCH: "" }, { listen: { host: "127.0.0.1", port: 8080 } }],
  ])("%j is read", (env, expected) => {
    expect(configOf([], { CELLD_BUCKET: "s3://cells", ...env })).toMatchObject(expected);
  });

  it("loses to a flag", () => {
    const config = configOf(onBucket("--node", "flag"), {
      CELLD_BUCKET: "s3://other",
      CELLD_NODE: "variable",
    });
    expect(config).toMatchObject({ bucket: "s3://cells", node: "flag" });
  });
});

describe("the bucket", () => {
  it.each([
    ["s3://cells", "s3://cells"],
    ["s3://cells/a/b", "s3://cells/a/b"],
    ["cells", "s3://cells"],
    ["cells/a", "s3://cells/a"],
  ])("%s is %s", (given, url) => expect(configOf(["--bucket", given]).bucket).toBe(url));

  it.each([
    ["file:///srv/cells", /every node reaches: serve the directory with `cellkit bucket serve DIR`/],
    ["gs://cells", /S3 stores only/],
    ["az://cells", /S3 stores only/],
    ["s3://", /must be s3:\/\/BUCKET/],
    ["http://cells", /must be s3:\/\/BUCKET/],
    ["s3://a b", /must be s3:\/\/BUCKET/],
  ])("%s is refused", (given, message) => {
    expect(problemsOf(["--bucket", given])).toEqual([expect.stringMatching(message)]);
  });
});

describe("listeners", () => {
  it.each<[string, string[]]>([
    ["a loopback listener needs nothing else", ["--listen", "127.0.0.5:80"]],
    ["localhost is loopback", ["--listen", "localhost:80"]],
    ["[::1] is loopback", ["--listen", "[::1]:80"]],
    ["any other listener goes with an internal one", ["--listen", "0.0.0.0:8080", ...internal]],
    ["0.0.0.0 inside goes with --advertise", ["--internal-listen", "0.0.0.0:1", "--advertise", "10.0.0.7:1"]],
    ["a host name is not resolved", [...internal, "--advertise", "no-such-host.invalid:8081"]],
    [
      "a public address goes with the flag",
      [...internal, "--advertise", "8.8.8.8:1", "--unsafe-public-advertise"],
    ],
  ])("%s", (_, argv) => expect(problemsOf(onBucket(...argv))).toEqual([]));

  it.each([
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.1",
    "192.168.1.1",
    "169.254.1.1",
    "100.64.0.1",
    "100.127.0.1",
    "[::1]",
    "[fd00::1]",
    "[fe80::1]",
  ])("%s is not public", (host) => {
    expect(problemsOf(onBucket(...internal, "--advertise", `${host}:8081`))).toEqual([]);
  });

  it.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "193.168.1.1", "[2001:db8::1]"])(
    "%s is public",
    (host) => {
      expect(problemsOf(onBucket(...internal, "--advertise", `${host}:8081`))).toEqual([
        expect.stringMatching(/^--advertise: .* is a public address.*--unsafe-public-advertise/),
      ]);
    },
  );

  it.each<[string, string[], RegExp]>([
    [
      "a public listener without an internal one",
      ["--listen", "0.0.0.0:8080"],
      /^--internal-listen: needs a port/,
    ],
    ["a host name as listener, too", ["--listen", "node.example:80"], /^--internal-listen: needs a port/],
    [
      "--advertise without an internal one",
      ["--advertise", "10.0.0.7:1"],
      /^--internal-listen: needs a port/,
    ],
    [
      "0.0.0.0 inside without --advertise",
      ["--internal-listen", "0.0.0.0:1"],
      /^--advertise: is needed with/,
    ],
    ["[::] inside without --advertise", ["--internal-listen", "[::]:1"], /^--advertise: is needed with/],
    ["port 0 advertised", [...internal, "--advertise", "10.0.0.7:0"], /^--advertise.*: needs the port/],
    ["0.0.0.0 advertised", [...internal, "--advertise", "0.0.0.0:1"], /not an address that peers can dial/],
    ["[::] advertised", [...internal, "--advertise", "[::]:1"], /not an address that peers can dial/],
    ["broadcast advertised", [...internal, "--advertise", "255.255.255.255:1"], /that peers can dial/],
    ["multicast advertised", [...internal, "--advertise", "239.1.1.1:1"], /multicast/],
    ["IPv6 multicast advertised", [...internal, "--advertise", "[ff02::1]:1"], /multicast/],
    ["no port", ["--listen", "127.0.0.1"], /^--listen.*: must be HOST:PORT/],
    ["a port past the last", ["--listen", "127.0.0.1:65536"], /^--listen.*: must be HOST:PORT/],
    ["IPv6 without brackets", ["--listen", "::1:80"], /^--listen.*: must be HOST:PORT/],
  ])("%s is refused", (_, argv, message) => {
    expect(problemsOf(onBucket(...argv))).toEqual([expect.stringMatching(message)]);
  });
});

it.each<[string[], RegExp]>([
  [["--node", "a/b"], /^--node.*: must be 1 to 128/],
  [["--node", "n".repeat(129)], /^--node.*: must be 1 to 128/],
  [["--region", "EU"], /^--region.*: must be a region name/],
  [["--endpoint", "127.0.0.1:9000"], /^--endpoint.*: must be an http/],
  [["--shutdown-drain-ms", "999"], /^--shutdown-drain-ms/],
  [["--shutdown-drain-ms", "1.5"], /^--shutdown-drain-ms/],
])("%j is refused", (argv, message) => {
  expect(problemsOf(onBucket(...argv))).toEqual([expect.stringMatching(message)]);
});

it("all problems are told at once, those between options too", () => {
  const argv = [
    "--bucket",
    "file:///x",
    "--listen",
    "0.0.0.0:80",
    "--advertise",
    "8.8.8.8:1",
    "--nope",
    "--region",
    "?",
  ];
  expect(
    problemsOf(argv, { CELLD_VAR_A: "1", CELLD_SHUTDOWN_DRAIN_MS: "soon" }).map((line) => line.split(":")[0]),
  ).toEqual(
    expect.arrayContaining([
      "--nope",
      "CELLD_VAR_A",
      "CELLD_SHUTDOWN_DRAIN_MS",
      expect.stringMatching(/^--bucket/),
      expect.stringMatching(/^--region/),
      "--internal-listen",
      expect.stringMatching(/^--advertise/),
    ]),
  );
});
