/** The manifest and the pointers: what lies in the bucket, as schemas. Unknown members are ignored. */
import { z } from "zod";
import { maxModuleBytes, maxModuleCount } from "./limits.ts";
import {
  bindingName,
  calendarDay,
  className,
  compatibilityFlag,
  moduleName,
  scriptName,
  versionText,
} from "./names.ts";

/** What a deployment may ask of a node, in the manifest's `required_features`. A node refuses what it does not know. */
export const features = {
  /** A module of kind `wasm`. */
  wasm: "wasm-v1",
  /** Modules of the kinds `text` and `data`, which only cellkit writes. */
  moduleKinds: "cellkit-module-kinds-v1",
} as const;

const binding = z.discriminatedUnion("type", [
  z.object({ type: z.literal("durable_object_namespace"), name: bindingName, class_name: className }),
  z.object({ type: z.literal("plain_text"), name: bindingName, text: z.string() }),
  z.object({ type: z.literal("json"), name: bindingName, json: z.json() }),
]);

/** One binding of the upload metadata: a namespace of cells, or a variable. */
export type Binding = z.infer<typeof binding>;

/** The types of binding that can be read. */
export const bindingTypes: readonly string[] = ["durable_object_namespace", "plain_text", "json"];

/** The upload metadata: everything about a Worker but its modules. */
const rawMetadata = z.object({
  main_module: moduleName,
  compatibility_date: calendarDay,
  compatibility_flags: z.array(compatibilityFlag).max(200),
  bindings: z.array(binding).max(1000),
  migrations: z
    .object({
      new_tag: z.string(),
      steps: z.array(z.object({ new_sqlite_classes: z.array(className) })),
    })
    .optional(),
});

/** The upload metadata of a deployment. */
export type RawMetadata = z.infer<typeof rawMetadata>;

const manifestModule = z.object({
  name: moduleName,
  bytes: z.int().min(0).max(maxModuleBytes),
  sha256: z.string().regex(/^[0-9a-f]{16}$/, "the first 16 hexadecimal digits of a SHA-256"),
  /** Absent for an ES module. */
  kind: z.enum(["wasm", "text", "data"]).optional(),
});

/** `deploy/<script>/<version>/manifest.json`. */
export const manifest = z
  .object({
    schema_version: z.literal(1),
    version: versionText,
    script_name: scriptName,
    main_module: moduleName,
    /** Every class whose instances are cells. */
    do_classes: z.array(className),
    /** Those of them that keep their data in SQLite. */
    sqlite_classes: z.array(className),
    modules: z.array(manifestModule).min(1).max(maxModuleCount),
    required_features: z.array(z.string()).optional(),
    raw_metadata: rawMetadata,
  })
  .refine(
    ({ modules }) => new Set(modules.map(({ name }) => name)).size === modules.length,
    "two modules have the same name",
  )
  .refine(
    ({ modules, main_module }) =>
      modules.some(({ name, kind }) => name === main_module && kind === undefined),
    "main_module is not one of the ES modules",
  );

/** The manifest of one version of a script. */
export type Manifest = z.infer<typeof manifest>;

/** `deploy/current.json` and `deploy/<script>/current.json`. */
export const pointer = z.object({
  script_name: scriptName.optional(),
  version: versionText,
  prefix: z.string().max(512),
  rollout: z.object({ percent: z.number() }),
});

/** As much of a manifest as says whether it can be read at all; phrases in it are shown, so they are short. */
export const outline = z.object({
  schema_version: z.number(),
  required_features: z.array(z.string().max(64)).max(100).default([]),
  assets: z.unknown().optional(),
  crons: z.array(z.unknown()).default([]),
  modules: z.array(z.object({ kind: z.string().max(64).optional() })).max(maxModuleCount),
  raw_metadata: z.object({ bindings: z.array(z.object({ type: z.string().max(64) })).max(1000) }),
});
