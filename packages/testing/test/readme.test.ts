import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import * as errors from "../src/errors.ts";

const text = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const readme = text("../README.md");

it("the README's first block is the example that is tested", () => {
  const [, block] = /```ts\n(.*?)```/s.exec(readme) ?? [];
  expect(block).toBe(text("./readme-example.test.ts"));
});

it("the README names every error code, and no other", () => {
  const named = [...readme.matchAll(/^\| `(CELLKIT_TESTING_[A-Z_]+)`/gm)].map(([, code]) => code);
  const source = [...text("../src/errors.ts").matchAll(/"(CELLKIT_TESTING_[A-Z_]+)"/g)].map(
    ([, code]) => code,
  );
  expect(named.toSorted()).toEqual(source.toSorted());
  expect(source).toHaveLength(Object.keys(errors).length - 1);
});

it.each([
  ["dispatcher", "../src/dispatcher/options.ts", "DispatcherOptions"],
  ["routerHandlers", "../src/msw/router-handlers.ts", "RouterHandlerOptions"],
  ["fleet", "../src/fleet/options.ts", "TestFleetOptions"],
  ["faultProxy", "../src/proxy/fault-proxy.ts", "FaultProxyOptions"],
])("the README's table of %s has every option, and no other", (name, path, type) => {
  const [, body = ""] = new RegExp(`export interface ${type} \\{\n(.*?)\n\\}`, "s").exec(text(path)) ?? [];
  const declared = [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, option]) => option);
  const [, rows = ""] =
    new RegExp(`\\| option of \`${name}\` .*?\n\\|---.*?\n((?:\\|.*\n)+)`).exec(readme) ?? [];
  const named = rows
    .split("\n")
    .flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, option]) => option));
  expect(declared.length).toBeGreaterThan(0);
  expect(named.toSorted()).toEqual(declared.toSorted());
});

it.each([
  ["fault", "../src/core/fault.ts", "Fault"],
  ["refusal", "../src/core/fault.ts", "RefusalFault"],
  ["fault of a router", "../src/msw/router-fault.ts", "RouterFault"],
  ["network fault", "../src/proxy/proxied-message.ts", "NetworkFault"],
])("the README names every %s", (_name, path, type) => {
  const [, body = ""] = new RegExp(`export type ${type} =(.*?);\n\n`, "s").exec(`${text(path)}\n`) ?? [];
  const kinds = [...body.matchAll(/kind: "([a-z-]+)"/g)].map(([, kind]) => kind ?? "");
  expect(kinds.length).toBeGreaterThan(2);
  for (const kind of kinds) expect(readme).toMatch(new RegExp(`kind: "${kind}"|\`${kind}\``));
});

it.each([
  ["end", "../src/core/run-end.ts", /export type RunEnd =(.*?);\n\n/s, /kind: "(\w+)"/g],
  [
    "member of `node`",
    "../src/dispatcher/node-figures.ts",
    /export interface NodeOptions \{(.*?)\n\}/s,
    /readonly (\w+)\?/g,
  ],
])("the README's table of each %s has them all", (name, path, type, member) => {
  const [, body = ""] = type.exec(text(path)) ?? [];
  const rows = readme.split(`| ${name} |`)[1]?.split("\n\n")[0] ?? "";
  const members = [...body.matchAll(member)].map(([, each]) => each);
  expect(members.length).toBeGreaterThan(3);
  for (const each of members) expect(rows).toMatch(new RegExp(`[\`"]${each}[\`"]`));
});
