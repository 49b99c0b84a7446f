import { packageVersion } from "@cellkit/daemon";

/** The version of this package. Stands in `src/` itself, from where its package.json is one folder up, as from `dist/`. */
export function cellkitVersion(): string {
  return packageVersion(import.meta.url);
}
