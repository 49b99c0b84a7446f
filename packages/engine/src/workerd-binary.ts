// Finds the workerd that this package is pinned to. Cluster mode is experimental and changes between versions, so any other
// version is refused instead of tried.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { z } from "zod";
import { WorkerdMissingError, WorkerdVersionError } from "./errors.ts";

/** The only version of the npm package `workerd` that this engine runs. */
export const pinnedWorkerdVersion = "1.20261117.1";

const platforms: Readonly<Record<string, string>> = {
  "darwin arm64": "@cloudflare/workerd-darwin-arm64",
  "darwin x64": "@cloudflare/workerd-darwin-64",
  "linux arm64": "@cloudflare/workerd-linux-arm64",
  "linux x64": "@cloudflare/workerd-linux-64",
};
const manifestSchema = z.looseObject({ version: z.string() });

/**
 * The path of the pinned workerd for this machine.
 *
 * @param from where to resolve the package from, as for `createRequire`; default this package
 * @throws WorkerdMissingError (CELLKIT_ENGINE_WORKERD_MISSING), WorkerdVersionError (CELLKIT_ENGINE_WORKERD_VERSION)
 */
export async function findWorkerd(from: string | URL = import.meta.url): Promise<string> {
  const platform = `${process.platform} ${process.arch}`;
  const binaryPackage = platforms[platform];
  if (binaryPackage === undefined) {
    throw new WorkerdMissingError(
      `there is no workerd for ${platform}: run the node on Linux or macOS, x64 or arm64`,
    );
  }
  const require = createRequire(from);
  const wrapper = await readVersion("workerd", () => require.resolve("workerd/package.json"));
  if (wrapper.version !== pinnedWorkerdVersion) {
    throw new WorkerdVersionError(wrapper.version, pinnedWorkerdVersion);
  }
  // The wrapper's optional dependency: found from where the wrapper lies.
  const resolve = (path: string) => createRequire(wrapper.manifest).resolve(`${binaryPackage}/${path}`);
  const binary = await readVersion(binaryPackage, () => resolve("package.json"));
  if (binary.version !== pinnedWorkerdVersion) {
    throw new WorkerdVersionError(binary.version, pinnedWorkerdVersion);
  }
  return resolve("bin/workerd");
}

async function readVersion(
  name: string,
  locate: () => string,
): Promise<{ version: string; manifest: string }> {
  try {
    const manifest = locate();
    const { version } = manifestSchema.parse(JSON.parse(await readFile(manifest, "utf8")));
    return { version, manifest };
  } catch (error) {
    throw new WorkerdMissingError(
      `the npm package ${name} is not installed: install workerd@${pinnedWorkerdVersion} with its optional dependencies`,
      { cause: error },
    );
  }
}
