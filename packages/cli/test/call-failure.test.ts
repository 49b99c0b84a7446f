import { PassThrough } from "node:stream";
import type { Bucket } from "@cellkit/bucket";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { absentClass, checkRefusal, explained } from "../src/call-failure.ts";
import { writeAnswer } from "../src/cell-call.ts";
import { directoryBucket } from "./support/peer-node.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let bucket: Bucket;
beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  bucket = directoryBucket(`${directory.path}/bucket`).bucket;
  await bucket.put("deploy/current.json", JSON.stringify({ script_name: "chat", version: "1" }));
});
afterEach(async () => {
  await bucket.close();
  await directory.remove();
});
const deploy = (classes: unknown) =>
  bucket.put("deploy/chat/1/manifest.json", JSON.stringify({ do_classes: classes }));
const facts = (className: string, script?: string) => ({
  store: bucket,
  className,
  script,
  signal: new AbortController().signal,
});

describe("a class is", () => {
  it("absent when the deployment does not have it", async () => {
    await deploy(["Room", "Hall"]);
    expect(await absentClass(facts("Nope"))).toBe("no class Nope in chat; it has Room, Hall");
    expect(await absentClass(facts("Hall"))).toBeUndefined();
  });

  it("absent when it is of another script", async () => {
    expect(await absentClass(facts("Room", "nix"))).toBe("the fleet runs the script chat, and not nix");
  });

  it("not called absent when the deployment cannot be read", async () => {
    expect(await absentClass(facts("Nope"))).toBeUndefined();
    await deploy("Room");
    expect(await absentClass(facts("Nope"))).toBeUndefined();
    await bucket.put("deploy/current.json", "{");
    expect(await absentClass(facts("Nope", "nix"))).toBeUndefined();
  });
});

describe("an answer", () => {
  const refusal = (status: number, headers: Record<string, string>) => new Response("x", { status, headers });

  it("of the node, before any cell, is explained", async () => {
    await deploy(["Room"]);
    const answer = refusal(503, { "cellkit-outcome": "not-run" });
    await expect(checkRefusal(answer, facts("Nope"))).rejects.toMatchObject({
      code: "CELLKIT_CLI_CALL_INPUT",
      exitCode: 2,
    });
  });

  it("of a cell, or of a node for another reason, is left as it is", async () => {
    await deploy(["Room"]);
    const passes: Array<[Response, string]> = [
      [refusal(503, {}), "Nope"],
      [refusal(200, { "cellkit-outcome": "not-run" }), "Nope"],
      [refusal(503, { "cellkit-outcome": "not-run" }), "Room"],
    ];
    for (const [answer, className] of passes) {
      await checkRefusal(answer, facts(className));
      expect(await answer.text()).toBe("x");
    }
  });
});

it("a call whose time ran out before anything was sent is said not to have run", async () => {
  const error = await explained(new Error("x"), facts("Room"), { overMs: 5, unsent: true });
  expect(error).toMatchObject({
    code: "CELLKIT_CLI_CALL_FAILED",
    message: "no whole answer within --max-time-ms 5; nothing was sent to a node",
  });
});

describe("an answer's last line", () => {
  const written = async (body: string | null, isTTY: boolean): Promise<string> => {
    const output = Object.assign(new PassThrough(), { isTTY });
    await writeAnswer(new Response(body), false, output);
    output.end();
    return output
      .setEncoding("utf8")
      .toArray()
      .then((parts) => parts.join(""));
  };

  it.each([
    ["ended on a terminal", "{}", true, "{}\n"],
    ["not ended twice", "{}\n", true, "{}\n"],
    ["as it came in a file or a pipe", "{}", false, "{}"],
    ["not made up for an empty body", "", true, ""],
    ["not made up for no body", null, true, ""],
  ])("is %s", async (_, body, isTTY, text) => {
    expect(await written(body, isTTY)).toBe(text);
  });
});
