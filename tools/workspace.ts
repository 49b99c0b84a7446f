// What the workspace holds: its packages, in the order of their layers.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the whole workspace. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** The parts of a package.json that the tools read. */
export interface Manifest {
  name: string;
  version?: string;
  description?: string;
  license?: string;
  type?: string;
  engines?: Record<string, string>;
  private?: boolean;
  exports?: Record<string, unknown>;
  publishConfig?: { exports?: Record<string, unknown> };
  bin?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** One package: its folder under packages/, its path and its manifest. */
export interface Package {
  folder: string;
  path: string;
  manifest: Manifest;
}

/** All packages under packages/, by folder name. */
export function packages(): Package[] {
  return readdirSync(join(root, "packages"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
    .map((folder) => {
      const path = join(root, "packages", folder);
      return {
        folder,
        path,
        manifest: JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as Manifest,
      };
    });
}

/** The manifest of the workspace itself. */
export function workspaceManifest(): Manifest & { packageManager: string } {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest & {
    packageManager: string;
  };
}
