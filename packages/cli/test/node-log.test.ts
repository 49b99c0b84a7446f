import { describe, expect, it } from "vitest";
import { lineForPeople, reasonOf } from "../src/node-log.ts";

const entry = (fields: object): string => JSON.stringify({ level: "info", msg: "hello", ...fields });

describe("of a node's log a person is shown", () => {
  it.each([
    ["what the Worker prints", entry({ stream: "stdout" }), "hello"],
    ["what it prints as an error", entry({ level: "warn", stream: "stderr" }), "hello"],
    ["what went wrong", entry({ level: "error" }), "error: hello"],
    ["nothing of what goes well", entry({}), undefined],
    ["nothing of the reason of an end, which is told with the end", entry({ level: "fatal" }), undefined],
    [
      "a line that is no entry, as it is",
      "a request failed: no space left",
      "a request failed: no space left",
    ],
    ["JSON that is no entry, as it is", '{"a":1}', '{"a":1}'],
    ["half an entry, as it is", '{"level":"in', '{"level":"in'],
  ])("%s", (_, line, shown) => {
    expect(lineForPeople(line)).toBe(shown);
  });
});

describe("the reason of an end is", () => {
  it.each([
    [
      "the last fatal entry's message",
      [entry({ level: "fatal", msg: "port taken" }), entry({})],
      "port taken",
    ],
    [
      "the last line where there is none",
      ["first", "cellkit: no such directory", ""],
      "cellkit: no such directory",
    ],
    ["the message of an entry where there is none", [entry({ msg: "ended" })], "ended"],
    ["silence", [], "it printed nothing"],
  ])("%s", (_, lines, reason) => {
    expect(reasonOf(lines)).toBe(reason);
  });
});
