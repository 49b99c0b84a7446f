import { expect, it } from "vitest";
import * as face from "../src/index.ts";

const cause = new Error("the cause");

/** One of each, with what its message must hold. */
const table: [keyof typeof face, face.DeploymentError, string, string][] = [
  [
    "ProjectNotFoundError",
    new face.ProjectNotFoundError("no project", { cause }),
    "NO_PROJECT",
    "no project",
  ],
  [
    "WranglerConfigError",
    new face.WranglerConfigError("w.json", ["a", "b"], { cause }),
    "CONFIG",
    "w.json, 2 problems:\n  a\n  b",
  ],
  [
    "BundleError",
    new face.BundleError("chat", ["a"], { cause }),
    "BUNDLE",
    "the Worker chat cannot be bundled: a",
  ],
  ["DeployConflictError", new face.DeployConflictError("k", "v", { cause }), "CONFLICT", "k now says v"],
  ["OtherScriptError", new face.OtherScriptError("a", "b", { cause }), "OTHER_SCRIPT", "runs the script a"],
  ["InvalidDeploymentError", new face.InvalidDeploymentError("k", "p", { cause }), "INVALID", "k: p; deploy"],
  [
    "UnsupportedDeploymentError",
    new face.UnsupportedDeploymentError("k", ["x", "y"], { cause }),
    "UNSUPPORTED",
    "x, y; run",
  ],
];

it.each(table)("%s has its name, code, message and cause", (name, error, code, message) => {
  expect(error).toBeInstanceOf(face.DeploymentError);
  expect(error.name).toBe(name);
  expect(error.code).toBe(`CELLKIT_DEPLOYMENT_${code}`);
  expect(error.message).toContain(message);
  expect(error.cause).toBe(cause);
});

it("every error class that the package exports is in the table", () => {
  const classes = Object.keys(face).filter((name) => name.endsWith("Error") && name !== "DeploymentError");
  expect(table.map(([name]) => name).sort()).toEqual(classes.sort());
});
