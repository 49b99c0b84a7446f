import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it } from "vitest";
import { anchors, localLinks } from "../links.ts";
import { root } from "../workspace.ts";

it("takes links to files, and neither those that lead out nor what stands in code", () => {
  const markdown =
    "[a](a.md) [b](https://b.example) `[c](c.md)` [d](../d.md#e)\n```md\n[f](f.md)\n```\n[g](#h)";
  expect(localLinks(markdown)).toEqual(["a.md", "../d.md#e", "#h"]);
});

it("makes anchors of headings as GitHub does", () => {
  expect(anchors("# What a *file* may hold?\n\n```sh\n# no heading\n```\n## `x-y` z\n")).toEqual(
    new Set(["what-a-file-may-hold", "x-y-z"]),
  );
});

/** Every Markdown file that is part of the repository. */
function files(): string[] {
  const listed = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
    cwd: root,
    encoding: "utf8",
  });
  expect(listed.status, listed.stderr).toBe(0);
  return listed.stdout
    .split("\n")
    .filter((file) => file !== "" && !file.startsWith("etc/") && existsSync(join(root, file)));
}

it("every link of this repository's pages leads to a file, and to a heading where it names one", () => {
  const broken = files().flatMap((file) => {
    const markdown = readFileSync(join(root, file), "utf8");
    return localLinks(markdown).flatMap((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? join(root, file) : resolve(root, dirname(file), path);
      if (!existsSync(target)) return [`${file}: ${link} leads nowhere`];
      if (anchor === undefined || !target.endsWith(".md")) return [];
      return anchors(readFileSync(target, "utf8")).has(anchor) ? [] : [`${file}: ${link} names no heading`];
    });
  });
  expect(broken).toEqual([]);
});
