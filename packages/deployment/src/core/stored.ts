/** From bytes of the bucket to pointers and manifests. What is wrong comes back as a value; nothing is thrown. */
import type { z } from "zod";
import { scriptPointerKey, versionPrefix } from "./layout.ts";
import { bindingTypes, features, type Manifest, manifest, outline, pointer } from "./manifest.ts";
import { scriptName as scriptNameSchema } from "./names.ts";

/** Which version of which script is the current one. */
export interface Pointer {
  readonly scriptName: string;
  /** 16 hexadecimal digits. */
  readonly version: string;
}

/** What reading an object gave: its value, why it is malformed, or what it needs and this version does not have. */
export type Stored<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "invalid"; readonly problem: string }
  | { readonly kind: "unsupported"; readonly unsupported: readonly string[] };

function invalid(problem: string): { kind: "invalid"; problem: string } {
  return { kind: "invalid", problem };
}

/** The first issue of a schema, with its path, and without the value that it is about. */
function firstIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  const path = issue?.path.join(".") ?? "";
  return `${path === "" ? "" : `${path}: `}${issue?.message ?? "malformed"}`;
}

function json(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // Neither the parser's message (it quotes the text) nor the decoder's says more than this.
    return undefined;
  }
}

/** The text of a pointer to a version. */
export function pointerText({ scriptName, version }: Pointer): string {
  return JSON.stringify({
    script_name: scriptName,
    version,
    prefix: versionPrefix(scriptName, version),
    rollout: { percent: 100 },
  });
}

/** Reads a pointer. Its `script_name` may be absent, its prefix may end in a slash; both must fit together. */
export function parsePointer(bytes: Uint8Array): Stored<Pointer> {
  const checked = pointer.safeParse(json(bytes));
  if (!checked.success) return invalid(`not a pointer (${firstIssue(checked.error)})`);
  const { script_name, version, prefix, rollout } = checked.data;
  const named = scriptNameSchema.safeParse(script_name ?? prefix.split("/")[1]);
  if (!named.success) return invalid(`its prefix is ${prefix} (${firstIssue(named.error)})`);
  const scriptName = named.data;
  if (prefix.replace(/\/$/, "") !== versionPrefix(scriptName, version)) {
    return invalid(`its prefix is ${prefix}, which is not where version ${version} of a script lies`);
  }
  if (rollout.percent !== 100) {
    return { kind: "unsupported", unsupported: [`a rollout of ${rollout.percent} percent`] };
  }
  return { kind: "value", value: { scriptName, version } };
}

/** Reads the manifest that a pointer leads to. */
export function parseManifest(bytes: Uint8Array, { scriptName, version }: Pointer): Stored<Manifest> {
  const value = json(bytes);
  // First what a newer writer may have added, so that it is not called malformed.
  const outlined = outline.safeParse(value);
  if (!outlined.success) return invalid(`not a manifest (${firstIssue(outlined.error)})`);
  const unsupported = needs(outlined.data);
  if (unsupported.length > 0) return { kind: "unsupported", unsupported };
  const checked = manifest.safeParse(value);
  if (!checked.success) return invalid(`not a manifest (${firstIssue(checked.error)})`);
  if (checked.data.script_name !== scriptName || checked.data.version !== version) {
    return invalid(
      `it is the manifest of version ${checked.data.version} of ${checked.data.script_name}, ` +
        `but ${scriptPointerKey(scriptName)} led here for version ${version}`,
    );
  }
  return { kind: "value", value: checked.data };
}

/** Everything that a manifest needs and that is not there, one phrase each. */
function needs({
  schema_version,
  required_features,
  assets,
  crons,
  modules,
  raw_metadata,
}: z.infer<typeof outline>) {
  const known: readonly string[] = Object.values(features);
  const kinds = new Set(modules.flatMap(({ kind }) => kind ?? []));
  const types = new Set(raw_metadata.bindings.map(({ type }) => type));
  return [
    ...(schema_version === 1 ? [] : [`schema_version ${schema_version}`]),
    ...required_features.filter((name) => !known.includes(name)).map((name) => `the feature ${name}`),
    ...(assets === undefined || assets === null ? [] : ["static assets"]),
    ...(crons.length === 0 ? [] : ["cron triggers"]),
    ...[...kinds]
      .filter((kind) => !["wasm", "text", "data"].includes(kind))
      .map((kind) => `modules of kind ${kind}`),
    ...[...types].filter((type) => !bindingTypes.includes(type)).map((type) => `bindings of type ${type}`),
  ];
}
