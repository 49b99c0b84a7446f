import { expect, it } from "vitest";
import { type CreateLoggerOptions, createLogger, redactedFields } from "../src/index.ts";

function logger(options: Partial<CreateLoggerOptions> = {}) {
  const lines: string[] = [];
  const log = createLogger({
    name: "toy",
    env: {},
    ...options,
    stream: { write: (line: string) => void lines.push(line) },
  });
  return { log, lines };
}

it("writes one JSON object a line, the level as a word and the time in ISO 8601", () => {
  const { log, lines } = logger({ fields: { node: "n1" } });
  log.info({ count: 2 }, "ready");
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    level: "info",
    name: "toy",
    node: "n1",
    count: 2,
    msg: "ready",
  });
  expect(JSON.parse(lines[0] ?? "").time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

it("leaves the field pid to the program: a daemon tells of its children's", () => {
  const { log, lines } = logger();
  log.info({ pid: 7 }, "child");
  expect(lines[0]?.match(/"pid"/g)).toHaveLength(1);
});

it("writes what is at its level and above", () => {
  const { log, lines } = logger({ level: "warn" });
  log.info("no");
  log.warn("yes");
  expect(lines).toHaveLength(1);
});

const escapeCode = String.fromCharCode(27);

it.each<[string, Partial<CreateLoggerOptions>, "json" | "plain" | "colour"]>([
  ["for a machine when nobody is at a terminal", {}, "json"],
  ["for people on a terminal, with colour", { isTty: true }, "colour"],
  ["without colour under NO_COLOR", { isTty: true, env: { NO_COLOR: "1" } }, "plain"],
  ["with colour when NO_COLOR is empty", { isTty: true, env: { NO_COLOR: "" } }, "colour"],
  ["without colour on a dumb terminal", { isTty: true, env: { TERM: "dumb" } }, "plain"],
  ["as JSON on a terminal where that is asked for", { isTty: true, format: "json" }, "json"],
  ["for people off a terminal where that is asked for, without colour", { format: "pretty" }, "plain"],
])("writes %s", (_, options, expected) => {
  const { log, lines } = logger(options);
  log.info("ready");
  const text = lines.join("");
  const seen = text.startsWith("{") ? "json" : text.includes(escapeCode) ? "colour" : "plain";
  expect(seen).toBe(expected);
  expect(text).toContain("ready");
});

it.each(redactedFields)("%s is redacted at three depths", (field) => {
  const { log, lines } = logger();
  log.info({ [field]: "swordfish", one: { [field]: "swordfish", two: { [field]: "swordfish" } } }, "x");
  expect(lines.join("")).not.toContain("swordfish");
  expect(lines.join("").match(/\(redacted\)/g)).toHaveLength(3);
});

it("an error in a line keeps its code and its cause", () => {
  const { log, lines } = logger();
  log.error(
    { err: Object.assign(new TypeError("outer", { cause: new TypeError("inner") }), { code: "CELLKIT_X" }) },
    "x",
  );
  expect(JSON.parse(lines[0] ?? "").err).toMatchObject({
    code: "CELLKIT_X",
    message: expect.stringContaining("inner"),
  });
});
