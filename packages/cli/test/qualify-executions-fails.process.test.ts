// `cellkit qualify executions` on a plane that does not keep what it must, and with commands that fail.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HookError } from "../src/index.ts";
import type { HookFn, HookName } from "../src/qualify-executions/plane.ts";
import { LocalPlane } from "./support/local-plane.ts";

let plane: LocalPlane;
beforeEach(async () => {
  plane = await LocalPlane.open();
});
afterEach(() => plane.close());

describe("a plane that does not keep it fails", () => {
  it("when a command of the operator's fails, and the other checks go on", async () => {
    const upgrade = async () => {
      throw new HookError("upgrade", "code 7");
    };
    const { evidence, found } = await plane.qualify({ upgrade });
    expect(found.get("upgrade")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/^CELLKIT_CLI_HOOK: .*ended with code 7/),
    });
    expect(found.get("at-most-once")?.result).toBe("passed");
    expect(evidence.hooks).toMatchObject([{ hook: "upgrade", end: "code 7" }]);
    expect(evidence.verdict).toBe("failed");
  });

  it("when two commands fail, and both are told", async () => {
    const failing = (name: HookName) => async () => {
      throw new HookError(name, "code 7");
    };
    const { found } = await plane.qualify({
      "lose-answers": failing("lose-answers"),
      "restore-answers": failing("restore-answers"),
    });
    expect(found.get("ambiguous-acceptance")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/--lose-answers ended with code 7.*; then .*--restore-answers ended/),
    });
  });

  it("when it is told to stop, and a plane that cannot be restored then is told of all the same", async () => {
    const stop = new AbortController();
    const given: Partial<Record<HookName, HookFn>> = {
      "lose-answers": async () => stop.abort("SIGINT"),
      "restore-answers": async () => {
        throw new HookError("restore-answers", "code 9");
      },
    };
    const more = { longRequest: undefined, signal: stop.signal };
    await expect(plane.qualify(given, more)).rejects.toBe("SIGINT");
    expect(plane.notes).toEqual([
      expect.stringMatching(/plane is not as it was.*--restore-answers ended with code 9/),
    ]);
  });

  it("when an upgrade loses records", async () => {
    const upgrade = async () => {
      for (const node of plane.nodes) await node.restart({ journal: "lost" });
    };
    const { evidence, found } = await plane.qualify({ upgrade });
    expect(found.get("upgrade")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/^CELLKIT_EXECUTION_OWNER_LOST/),
    });
    expect(evidence.verdict).toBe("failed");
  });

  it("when an owner's run is also somebody else's", async () => {
    const [first, second] = plane.nodes;
    const rotate = async () => {
      for (const { body } of first.calls.filter(({ call }) => call === "submit"))
        await fetch(`${second.origin}/v1/executions`, {
          method: "POST",
          headers: { authorization: "Bearer backend-token-of-this-plane" },
          body: Buffer.from(body),
        });
    };
    const { found } = await plane.qualify({ rotate });
    expect(found.get("at-most-once")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/ is known to .* and /),
    });
  });

  it("when two origins lead to one node, or one to two", async () => {
    plane.nodes[1].change({ name: "node-a" });
    const { found } = await plane.qualify({});
    expect(found.get("two-dispatchers")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/fewer than two/),
    });
  });

  it("and what restores it is done even where a check cannot go on", async () => {
    const done: string[] = [];
    const { found } = await plane
      .qualify({
        "lose-answers": async () => {
          await plane.hooks["lose-answers"]("");
          throw new TypeError("a defect");
        },
        "restore-answers": async () => void done.push("restored"),
      })
      .catch((error: Error) => ({ found: error }));
    expect(found).toBeInstanceOf(TypeError);
    expect(done).toEqual(["restored"]);
  });
});
