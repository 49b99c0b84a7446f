/** A project directory: where its configuration lies. */
import type { Stats } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { maxConfigBytes } from "./core/limits.ts";
import { parseWranglerConfig, type WranglerConfig } from "./core/wrangler-config.ts";
import { ProjectNotFoundError, WranglerConfigError } from "./errors.ts";
import { notAFile } from "./regular-file.ts";

/** A project whose configuration was read. */
export interface Project {
  /** Absolute. */
  readonly directory: string;
  /** The configuration's file, absolute. */
  readonly configFile: string;
  readonly config: WranglerConfig;
  readonly warnings: readonly string[];
}

/**
 * Reads the configuration of a project.
 *
 * @throws ProjectNotFoundError (`CELLKIT_DEPLOYMENT_NO_PROJECT`), WranglerConfigError (`CELLKIT_DEPLOYMENT_CONFIG`)
 */
export async function readProject(directory: string): Promise<Project> {
  const absolute = resolve(directory);
  const configFile = await findConfig(absolute);
  const { size } = await stat(configFile);
  if (size > maxConfigBytes) {
    throw new WranglerConfigError(configFile, [
      `the file has ${size} bytes; at most ${maxConfigBytes} are read`,
    ]);
  }
  const result = parseWranglerConfig(await readFile(configFile, "utf8"));
  if (result.kind === "problems") throw new WranglerConfigError(configFile, result.problems);
  return { directory: absolute, configFile, config: result.config, warnings: result.warnings };
}

/** Whether a file is there; a directory of that name is not a file. */
async function isFile(path: string): Promise<boolean> {
  let stats: Stats;
  try {
    stats = await stat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw new ProjectNotFoundError(`${path} cannot be read (${code})`, { cause: error });
  }
  if (stats.isDirectory()) return false;
  const problem = notAFile(path, stats);
  if (problem !== undefined) throw new ProjectNotFoundError(problem);
  return true;
}

/** Exactly one of wrangler.jsonc and wrangler.json; no search in parent directories. */
async function findConfig(directory: string): Promise<string> {
  const jsonc = join(directory, "wrangler.jsonc");
  const json = join(directory, "wrangler.json");
  const toml = join(directory, "wrangler.toml");
  const [hasJsonc, hasJson, hasToml] = await Promise.all([jsonc, json, toml].map(isFile));
  if (hasJsonc && hasJson) {
    throw new ProjectNotFoundError(
      `${directory} has both wrangler.jsonc and wrangler.json: remove the one that is not meant`,
    );
  }
  if (hasJsonc) return jsonc;
  if (hasJson) return json;
  if (hasToml) {
    throw new ProjectNotFoundError(
      `${toml} is TOML, and only wrangler.jsonc and wrangler.json are read; to convert it, run there: ` +
        `python3 -c 'import json, tomllib; print(json.dumps(tomllib.load(open("wrangler.toml", "rb")), indent=2))' > wrangler.json`,
    );
  }
  throw new ProjectNotFoundError(
    `${directory} has no wrangler.jsonc or wrangler.json: name the directory of a Wrangler project`,
  );
}
