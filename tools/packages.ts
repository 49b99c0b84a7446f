// `npm run check:packages`: build, pack, publint and attw on the tarballs, API reports, daemons as
// images hold them. `npm run api` rewrites the reports.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Extractor, ExtractorConfig, ExtractorLogLevel } from "@microsoft/api-extractor";
import { tryPackedDaemons } from "./packed-daemons.ts";
import { run, runSteps } from "./processes.ts";
import { type Package, packages, root, workspaceManifest } from "./workspace.ts";

const updateReports = process.argv.includes("--api");
const work = mkdtempSync(join(tmpdir(), "cellkit-packages-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
const published = packages().filter(({ manifest }) => manifest.private !== true);

/** `.` and each subpath that has types, as [name of its report, its built .d.ts]. */
function entries({ folder, path, manifest }: Package): Array<[report: string, types: string]> {
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]): Array<[string, string]> => {
    const types = (target as { types?: string }).types;
    if (types === undefined) return [];
    const report = subpath === "." ? folder : `${folder}-${subpath.slice(2).replaceAll("/", "-")}`;
    return [[report, join(path, types)]];
  });
}

/** Holds one entry's public API against etc/<report>.api.md, or rewrites that file. */
function apiReport(path: string, report: string, types: string): boolean {
  const config = ExtractorConfig.prepare({
    configObjectFullPath: join(path, "api-extractor.json"),
    packageJsonFullPath: join(path, "package.json"),
    configObject: {
      projectFolder: path,
      mainEntryPointFilePath: types,
      compiler: {
        overrideTsconfig: {
          extends: join(root, "tsconfig.base.json"),
          compilerOptions: { customConditions: [], composite: false, rewriteRelativeImportExtensions: false },
          include: ["dist"],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: `${report}.api.md`,
        reportFolder: join(root, "etc"),
        reportTempFolder: join(work, "api"),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Warning } },
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.None },
          "ae-forgotten-export": { logLevel: ExtractorLogLevel.None },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
  });
  const result = Extractor.invoke(config, {
    localBuild: updateReports,
    messageCallback(message) {
      if (message.logLevel === "verbose" || message.logLevel === "info") message.handled = true;
    },
  });
  if (!result.succeeded)
    console.error(`the public API of ${report} changed: run \`npm run api\`, read the diff, add a changeset`);
  return result.succeeded;
}

function tarballs(): string[] {
  return readdirSync(work)
    .filter((file) => file.endsWith(".tgz"))
    .sort();
}

await runSteps([
  ["build", () => run(process.execPath, [join(root, "tools/build.ts")])],
  [
    "API reports",
    async () => {
      mkdirSync(join(work, "api"), { recursive: true });
      mkdirSync(join(root, "etc"), { recursive: true });
      const good = published.flatMap((each) =>
        entries(each).map(([report, types]) => apiReport(each.path, report, types)),
      );
      return good.every(Boolean) ? 0 : 1;
    },
  ],
  [
    "pack",
    async () => {
      for (const { path, manifest } of published) {
        const packed = spawnSync(
          "npx",
          ["-y", workspaceManifest().packageManager, "pack", "--pack-destination", work],
          {
            cwd: path,
            encoding: "utf8",
          },
        );
        if (packed.status !== 0) {
          console.error(`${manifest.name}: ${packed.stdout}${packed.stderr}`);
          return 1;
        }
      }
      return tarballs().length === published.length ? 0 : 1;
    },
  ],
  ["publint", () => each((tarball) => run("publint", ["--strict", tarball]))],
  [
    "are the types wrong",
    () => each((tarball) => run("attw", ["--profile", "esm-only", "--no-emoji", "--quiet", tarball])),
  ],
  ["changesets", changesets],
  ["packed daemons", tryPackedDaemons],
]);

/** Runs a check on every tarball and answers the worst exit code. */
async function each(check: (tarball: string) => Promise<number>): Promise<number> {
  let worst = 0;
  for (const tarball of tarballs()) {
    const code = await check(join(work, tarball));
    if (code !== 0) console.error(`failed: ${tarball}`);
    worst = Math.max(worst, code);
  }
  return worst;
}

/** Every public package is either released or named by a changeset, so that its first release says something. */
async function changesets(): Promise<number> {
  const texts = readdirSync(join(root, ".changeset"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => readFileSync(join(root, ".changeset", file), "utf8"));
  const missing = published.filter(
    ({ path, manifest }) =>
      !existsSync(join(path, "CHANGELOG.md")) && !texts.some((text) => text.includes(`"${manifest.name}"`)),
  );
  for (const { manifest } of missing)
    console.error(`${manifest.name} has neither a release nor a changeset: npx changeset`);
  return missing.length === 0 ? 0 : 1;
}
