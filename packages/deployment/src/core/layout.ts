/** Where a deployment lies in the bucket. Keys are relative to the bucket's prefix. */

/** The fleet's pointer: which deployment its nodes run. */
export const fleetPointerKey = "deploy/current.json";

/** The script's own pointer: its newest deployment. It is moved first and decides which of two deployments is the last. */
export function scriptPointerKey(scriptName: string): string {
  return `deploy/${scriptName}/current.json`;
}

/** The folder of one version, without a slash at the end: what a pointer's `prefix` says. */
export function versionPrefix(scriptName: string, version: string): string {
  return `deploy/${scriptName}/${version}`;
}

/** The key of a version's manifest. */
export function manifestKey(scriptName: string, version: string): string {
  return `${versionPrefix(scriptName, version)}/manifest.json`;
}

/** The key of one module of a version. */
export function moduleKey(scriptName: string, version: string, moduleName: string): string {
  return `${versionPrefix(scriptName, version)}/${moduleName}`;
}
