import { describe, expect, it } from "vitest";
import * as errors from "../src/errors.ts";

const cause = new TypeError("below");
const table: readonly [errors.EngineError, string][] = [
  [new errors.EngineOptionError("message", { cause }), "CELLKIT_ENGINE_OPTION"],
  [new errors.EngineStateError("message", { cause }), "CELLKIT_ENGINE_STATE"],
  [new errors.WorkerdMissingError("message", { cause }), "CELLKIT_ENGINE_WORKERD_MISSING"],
  [new errors.WorkerdVersionError("1.2.3", "1.2.4", { cause }), "CELLKIT_ENGINE_WORKERD_VERSION"],
  [new errors.WorkerLoadError("chat", "Uncaught Error: no", { cause }), "CELLKIT_ENGINE_WORKER_LOAD"],
  [new errors.WorkerdStartError("message", { cause }), "CELLKIT_ENGINE_WORKERD_START"],
  [new errors.DeploymentUnsupportedError("message", { cause }), "CELLKIT_ENGINE_DEPLOYMENT_UNSUPPORTED"],
  [new errors.EngineStorageError("message", { cause }), "CELLKIT_ENGINE_STORAGE"],
  [new errors.DataDirectoryError("message", { cause }), "CELLKIT_ENGINE_DATA_DIRECTORY"],
  [new errors.SecretsFileError("message", { cause }), "CELLKIT_ENGINE_SECRETS_FILE"],
  [new errors.VarsFileError("message", { cause }), "CELLKIT_ENGINE_VARS_FILE"],
  [new errors.ControlError("message", { cause }), "CELLKIT_ENGINE_CONTROL"],
];

describe("errors", () => {
  it("are all in this table", () => {
    const names = Object.keys(errors).filter((name) => name !== "EngineError");
    expect(table.map(([error]) => error.name).sort()).toEqual(names.sort());
  });

  it.each(table)("%s carries its name, code, message and cause", (error, code) => {
    expect(error).toBeInstanceOf(errors.EngineError);
    expect(error.name).toBe(error.constructor.name);
    expect(error.code).toBe(code);
    expect(error.message).not.toBe("");
    expect(error.cause).toBe(cause);
  });

  it("name both versions of workerd, and the Worker's own text", () => {
    expect(new errors.WorkerdVersionError("1.2.3", "1.2.4").message).toMatch(/1\.2\.3.*workerd@1\.2\.4/);
    expect(new errors.WorkerLoadError("chat", "Uncaught Error: no").message).toContain("Uncaught Error: no");
  });
});
