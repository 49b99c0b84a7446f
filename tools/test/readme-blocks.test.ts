import { expect, it } from "vitest";
import { runnableBlocks } from "../readme-blocks.ts";

it("takes the blocks that claim to run, with the line on which their code begins", () => {
  const markdown = [
    "# x",
    "```ts runnable",
    "one();",
    "two();",
    "```",
    "```ts",
    "shown();",
    "```",
    "```ts runnable",
    "three();",
    "```",
  ].join("\n");
  expect(runnableBlocks(markdown)).toEqual([
    { line: 3, code: "one();\ntwo();\n" },
    { line: 10, code: "three();\n" },
  ]);
});

it("has nothing to take from a text without such blocks, or from one that is never closed", () => {
  expect(runnableBlocks("# x\n```ts\nshown();\n```\n")).toEqual([]);
  expect(runnableBlocks("```ts runnable\none();\n")).toEqual([]);
});
