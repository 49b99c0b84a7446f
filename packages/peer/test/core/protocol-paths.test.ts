import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { protocolPath, protocolPaths } from "../../src/core/protocol-paths.ts";

it("is what docs/protocol/internal-listener.md says", () => {
  const page = readFileSync(
    new URL("../../../../docs/protocol/internal-listener.md", import.meta.url),
    "utf8",
  );
  const [, table = ""] = /<!-- paths -->([\s\S]*?)<!-- \/paths -->/.exec(page) ?? [];
  const rows = [...table.matchAll(/^\| *`([^`]+)` *\| *(\d) *\| *(\w+) *\|$/gm)];
  expect(rows.map(([, path, version, use]) => ({ path, version: Number(version), use }))).toEqual(
    protocolPaths,
  );
});

it.each([
  ["/peer/probe", "/peer/probe"],
  ["/peer/probe?x=/__do/", "/peer/probe"],
  ["/peer/probe/", undefined],
  ["/peer/log/append", "/peer/log/*"],
  ["/peer/log", undefined],
  ["/__do/Room:1", "/__do/*"],
  ["/__do", undefined],
  ["/%5f%5fdo/x", undefined],
  ["/state", undefined],
  ["*", undefined],
])("%s is on the line of %s", (target, path) => {
  expect(protocolPath(target)?.path).toBe(path);
});
