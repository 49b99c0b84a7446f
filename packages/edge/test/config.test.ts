import { ConfigError, parseConfig } from "@cellkit/daemon";
import { describe, expect, it } from "vitest";
import { type EdgeConfig, edgeOptions } from "../src/config.ts";
import { backendVectors } from "./support/vectors.ts";

const pair = ["--tls-cert", "/etc/edge/tls.crt", "--tls-key", "/etc/edge/tls.key"];
const backend = ["--backend", "http://127.0.0.1:8788"];

function parse(argv: string[], env: Record<string, string> = {}) {
  return parseConfig(edgeOptions, {
    ...{ name: "cellkit-edge", version: "1.2.3", description: "An edge." },
    ...{ argv, env, envPrefix: "CELLKIT_EDGE_", helpWhenBare: true },
  });
}

function configOf(argv: string[], env?: Record<string, string>): EdgeConfig {
  const parsed = parse(argv, env);
  if (parsed.kind !== "config") throw new TypeError(`expected a configuration, not ${parsed.kind}`);
  return parsed.config;
}

/** What is wrong, as `where: message` lines. */
function problemsOf(argv: string[]): string[] {
  try {
    parse(argv);
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map(({ where, message }) => `${where}: ${message}`);
    throw error;
  }
  return [];
}

it("the original's command line is enough, its defaults are ours", () => {
  expect(configOf([...backend, ...pair])).toMatchObject({
    listen: { host: "127.0.0.1", port: 9443 },
    backend: { host: "127.0.0.1", port: 8788 },
    executionRouter: false,
    scopedReceiver: false,
    strictIds: false,
    maxConnections: 1_024,
  });
  expect(configOf([...backend, ...pair]).clientCa).toBeUndefined();
  expect(configOf([...backend, ...pair, "--listen", "10.0.0.7:9444", "--execution-router"])).toMatchObject({
    listen: { host: "10.0.0.7", port: 9444 },
    executionRouter: true,
  });
});

it("every option may come from the environment", () => {
  const env = {
    CELLKIT_EDGE_BACKEND: "http://[::1]:1",
    CELLKIT_EDGE_LISTEN: "[::]:9444",
    CELLKIT_EDGE_INTERNAL_LISTEN: "127.0.0.1:9100",
    CELLKIT_EDGE_MAX_CONNECTIONS: "7",
    CELLKIT_EDGE_TLS_CERT: "/a",
    CELLKIT_EDGE_TLS_KEY: "/b",
    CELLKIT_EDGE_CLIENT_CA: "/c",
    CELLKIT_EDGE_EXECUTION_ROUTER: "1",
    CELLKIT_EDGE_STRICT_IDS: "1",
    CELLKIT_EDGE_CHECK: "1",
    CELLKIT_EDGE_SCOPED_RECEIVER: "0",
  };
  expect(configOf([], env)).toMatchObject({
    ...{
      maxConnections: 7,
      tlsCert: "/a",
      tlsKey: "/b",
      clientCa: "/c",
      executionRouter: true,
      strictIds: true,
      check: true,
    },
    internalListen: { host: "127.0.0.1", port: 9100 },
  });
  expect(() => parse([])).toThrow(
    expect.objectContaining({ exitCode: 2, help: expect.stringMatching(/^Usage: /) }),
  );
});

describe("refused at the door", () => {
  it.each(backendVectors.filter(({ accepted }) => !accepted))("the backend $origin", ({ origin }) => {
    expect(problemsOf(["--backend", origin, ...pair])).toEqual([
      expect.stringMatching(/^--backend: fixed literal loopback HTTP dispatcher origin required/),
    ]);
  });

  it.each<[string, string[], (string | RegExp)[]]>([
    [
      "a relative certificate",
      [...backend, "--tls-cert", "tls.crt", "--tls-key", "/k"],
      [/^--tls-cert: absolute TLS certificate and key required/],
    ],
    [
      "a relative key",
      [...backend, "--tls-cert", "/c", "--tls-key", "./k"],
      [/^--tls-key: absolute TLS certificate and key required/],
    ],
    ["a relative CA", [...backend, ...pair, "--client-ca", "ca"], [/^--client-ca: absolute/]],
    ["no pair", backend, [/^--tls-cert: is required/, /^--tls-key: is required/]],
    [
      "the scoped mode",
      [...backend, ...pair, "--scoped-receiver"],
      [/^--scoped-receiver: scoped operations are not served yet/],
    ],
    [
      "two modes",
      [...backend, ...pair, "--execution-router", "--scoped-receiver"],
      [/^--execution-router: a listener has one mode/, /^--scoped-receiver/],
    ],
    [
      "strict ids for parents",
      [...backend, ...pair, "--strict-ids"],
      [/^--strict-ids: is about execution ids/],
    ],
    ["no connections", [...backend, ...pair, "--max-connections", "0"], [/^--max-connections/]],
    [
      "everything at once",
      ["--backend", "http://localhost:1", "--listen", "x", "--tls-cert", "c", "--nope"],
      [/^--nope/, /^--backend/, /^--listen/, /^--tls-cert/, /^--tls-key/],
    ],
  ])("%s", (_, argv, expected) => {
    expect(problemsOf(argv)).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
  });
});
