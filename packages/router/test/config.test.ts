import { ConfigError, parseConfig } from "@cellkit/daemon";
import { describe, expect, it } from "vitest";
import { type RouterConfig, routerOptions } from "../src/config.ts";

const needed = ["--client-token-file=/c", "--token-file=/b", "--ledger=/l", "--backends=http://a:1"];

function parse(argv: readonly string[], env: NodeJS.ProcessEnv = {}): RouterConfig {
  const parsed = parseConfig(routerOptions, {
    name: "cellkit-router",
    version: "0",
    description: "…",
    argv: [...argv],
    env,
    envPrefix: "CELLKIT_ROUTER_",
  });
  if (parsed.kind !== "config") throw new TypeError(parsed.kind);
  return parsed.config as RouterConfig;
}

function problems(argv: readonly string[], env: NodeJS.ProcessEnv = {}): string[] {
  try {
    parse(argv, env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ where, value = "", message }) => `${where}: ${message} ${value}`);
  }
}

/** `needed` without what begins like this. */
function without(...flags: string[]): string[] {
  return needed.filter((each) => !flags.some((flag) => each.startsWith(flag)));
}

describe("the original's command line", () => {
  it("is taken as it is", () => {
    const config = parse([
      ...["--listen", "0.0.0.0:8788", "--backends", "http://dispatcher-a:8787,http://dispatcher-b:8787/"],
      ...["--token-file", "/etc/celln/backend/token", "--client-token-file", "/etc/celln/client/token"],
      ...["--capability-token-file", "/etc/celln/capability/token"],
      ...["--ownership-dir", "/var/lib/celln/ownership", "--mode", "round-robin"],
    ]);
    expect(config).toMatchObject({
      listen: { host: "0.0.0.0", port: 8788 },
      tokenFile: "/etc/celln/backend/token",
      ownershipDir: "/var/lib/celln/ownership",
      mode: "round-robin",
    });
    expect(config.backends).toEqual(["http://dispatcher-a:8787", "http://dispatcher-b:8787"]);
  });

  it("has its defaults", () => {
    expect(parse(needed)).toMatchObject({ listen: { host: "0.0.0.0", port: 8787 }, mode: "round-robin" });
  });

  it.each([
    ["celln", { name: "celln", port: 8787 }],
    ["celln.system.svc:9000", { name: "celln.system.svc", port: 9000 }],
  ])("finds dispatchers by the name %s", (text, expected) => {
    expect(parse([...without("--backends"), `--backends-srv=${text}`]).backendsSrv).toEqual(expected);
  });
});

describe("what is refused at start", () => {
  it.each([
    ["no dispatcher", without("--backends"), /--backends: no dispatcher is named/],
    ["https", [...without("--backends"), "--backends=https://a"], /"https:\/\/a" is https.*: write http:/],
    [
      "a dispatcher twice",
      [...without("--backends"), "--backends=http://a:1,http://b,http://a:1/,http://a:1"],
      /^--backends: "http:\/\/a:1" stands there twice/,
    ],
    [
      "a ledger of no store",
      [...without("--ledger"), "--ledger=postgress://h/d"],
      /--ledger: no ledger lies at postgress/,
    ],
    ["an empty entry", [...without("--backends"), "--backends=http://a,"], /"" is no http:/],
    ["a path", [...without("--backends"), "--backends=http://a/b"], /is more than a scheme/],
    ["a bad name", [...without("--backends"), "--backends-srv=a:b"], /must be NAME or NAME:PORT/],
    ["a port past all", [...without("--backends"), "--backends-srv=a:65536"], /must be NAME or NAME:PORT/],
    ["no ledger", without("--ledger"), /--ownership-dir: exactly one/],
    ["two ledgers", [...needed, "--ownership-dir=/d"], /--ownership-dir: exactly one/],
    [
      "a bucket with a capacity",
      [...without("--ledger"), "--ledger=s3://b", "--ledger-capacity=5"],
      /--ledger-capacity: a bucket/,
    ],
    ["a certificate alone", [...needed, "--tls-cert=/c"], /--tls-cert: needs .* give --tls-key as well/],
    ["a key alone", [...needed, "--tls-key=/k"], /--tls-key: needs .* give --tls-cert as well/],
    ["a DNS server for nothing", [...needed, "--dns-server=127.0.0.1:53"], /--dns-server: is of use/],
    [
      "a second token without a first",
      [...needed, "--next-capability-token-file=/n"],
      /give --capability-token-file/,
    ],
    ["parents", [...needed, "--parent-token-file=/p"], /--parent-token-file: parents are not routed yet/],
    [
      "scoped operations",
      [...needed, "--scoped-token-file=/s"],
      /--scoped-token-file: scoped operations are not served yet/,
    ],
    [
      "two listeners on one port",
      [...needed, "--listen=127.0.0.1:9000", "--internal-listen=127.0.0.1:9000"],
      /--internal-listen: is where --listen is too/,
    ],
    [
      "a listener on every address, and another on one of them",
      [...needed, "--internal-listen=127.0.0.1:8787"],
      /--internal-listen: is where --listen is too/,
    ],
    ["a replica's name with a slash", [...needed, "--replica=a/b"], /--replica: must be 1 to 48/],
  ])("%s", (_, argv, expected) => {
    expect(problems(argv)).toEqual([expect.stringMatching(expected)]);
  });

  it("everything wrong is told at once", () => {
    const found = problems(["--backends=https://a", "--mode=fair", "--parent-token-file=/p", "--what"]);
    for (const flag of ["--backends", "--mode", "--parent-token-file", "--what", "--token-file"])
      expect(found.join("\n")).toContain(`${flag}`);
  });

  it("every entry of a list that is wrong is told", () => {
    const found = problems([...without("--backends"), "--backends=a,http://b,https://c,http://b/"]).join(
      "\n",
    );
    for (const part of ['"a" is no http:', '"https://c" is https', '"http://b" stands there twice'])
      expect(found).toContain(part);
  });

  it.each(["postgres://u:hunter2@h/d", "postgres:u:hunter2@h/d", "http://u:hunter2@h/d"])(
    "nothing of a ledger's address is in a message: %s",
    (url) => {
      const found = problems([...without("--ledger"), `--ledger=${url}`, "--ownership-dir=/d"]);
      expect(found).not.toEqual([]);
      expect(found.join()).not.toContain("hunter2");
    },
  );

  it("names that differ in the case of letters are two dispatchers, as the original takes them", () => {
    const { backends } = parse([...without("--backends"), "--backends=http://n,http://N,http://n:80"]);
    expect(backends).toEqual(["http://n", "http://N", "http://n:80"]);
  });
});

it.each([
  [[]],
  [["--listen=127.0.0.1:0", "--internal-listen=127.0.0.1:0"]],
  [["--listen=127.0.0.1:9000", "--internal-listen=127.0.0.2:9000"]],
  [["--listen=0.0.0.0:9000", "--internal-listen=[::1]:9000"]],
])("%j are listeners that do not meet", (flags) => {
  expect(problems([...needed, ...flags])).toEqual([]);
});

it("every option can come from the environment, and a flag wins", () => {
  const env = {
    CELLKIT_ROUTER_BACKENDS: "http://a,http://b",
    CELLKIT_ROUTER_TOKEN_FILE: "/b",
    CELLKIT_ROUTER_CLIENT_TOKEN_FILE: "/c",
    CELLKIT_ROUTER_OWNERSHIP_DIR: "/d",
    CELLKIT_ROUTER_MODE: "random",
  };
  expect(parse(["--mode=round-robin"], env)).toMatchObject({ ownershipDir: "/d", mode: "round-robin" });
});
