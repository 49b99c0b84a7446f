import { expect, it } from "vitest";
import { askWorkerd } from "./support/workerd-flags.ts";

it("the dates and flags are those of the pinned workerd (when its pin moved: this file, then --update)", async () => {
  const { version, newestDate, groups } = await askWorkerd();
  const text = `// The compatibility dates and flags of workerd ${version}, written by test/runtime-flags.process.test.ts, which asks
// the binary. When the pin moves, that test fails: run it with --update as the last word, and read the diff.

/** The newest compatibility date that the runtime knows. */
export const newestDate = ${JSON.stringify(newestDate)};

/** Every compatibility flag of the runtime; two on a line contradict each other. */
export const flagLines = \`
${groups.map((group) => group.join(" ")).join("\n")}
\`;
`;
  await expect(text).toMatchFileSnapshot("../src/core/runtime-flags.ts");
});
