import { parseConfig } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { celldOptions } from "../src/config.ts";
import { ignoredVariables, otherVariables } from "../src/environment.ts";

function parse(env: Record<string, string>) {
  const argv = ["--bucket", "s3://cells"];
  const rest = {
    name: "celld",
    version: "1.0.0",
    description: "A node.",
    envPrefix: "CELLD_",
    otherVariables,
  };
  return parseConfig(celldOptions, { ...rest, argv, env });
}

function warningsOf(env: Record<string, string>): readonly string[] {
  const parsed = parse(env);
  return parsed.kind === "config" ? parsed.warnings : [];
}

const withoutEffect = Object.entries(otherVariables).filter(([, { effect }]) => effect === "none");

it.each(withoutEffect)("%s is accepted with one warning, and /metrics lists it", (name, { reason }) => {
  const variable = name.replace("*", "_X");
  expect(warningsOf({ [variable]: "1" })).toEqual([`${variable} has no effect: ${reason}`]);
  expect(ignoredVariables({ [variable]: "1", PATH: "/bin" })).toEqual([variable]);
});

it.each(["CELLD_VAR_GREETING"])(
  "%s is refused: the Worker would run with other settings than it was given",
  (name) => {
    expect(() => parse({ [name]: "x" })).toThrow(`${name}: is refused: `);
    expect(ignoredVariables({ [name]: "x" })).toEqual([]);
  },
);

it("a variable with our prefix that nobody knows is a warning with a guess", () => {
  expect(warningsOf({ CELLD_ADRR: "127.0.0.1:1" })).toEqual([
    expect.stringMatching(
      /^CELLD_ADRR is not a variable of celld and has no effect; did you mean CELLD_ADDR\?/,
    ),
  ]);
});

it("variables that Kubernetes makes of Services and those of the store are no trouble", () => {
  expect(
    warningsOf({ KUBERNETES_SERVICE_HOST: "10.0.0.1", AWS_ACCESS_KEY_ID: "a", AZURE_TENANT_ID: "b" }),
  ).toEqual([]);
  expect(warningsOf({ CELLD_PORT_8080_TCP: "tcp://10.0.0.1:8080" })).toHaveLength(1);
});
