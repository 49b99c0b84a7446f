/** From a configuration and modules to the manifest. */

import { type Binding, features, type Manifest, type RawMetadata } from "./manifest.ts";
import { inNameOrder, type Module, moduleDigest, versionOf } from "./modules.ts";
import type { WranglerConfig } from "./wrangler-config.ts";

/** The upload metadata of a Worker. Bindings stand in the order of the configuration, cells first. */
function metadataOf(config: WranglerConfig, mainModule: string): RawMetadata {
  const bindings: Binding[] = config.durable_objects.bindings.map(({ name, class_name }) => ({
    type: "durable_object_namespace",
    name,
    class_name,
  }));
  for (const [name, value] of Object.entries(config.vars)) {
    bindings.push(
      typeof value === "string"
        ? { type: "plain_text", name, text: value }
        : { type: "json", name, json: value },
    );
  }
  const last = config.migrations.at(-1);
  return {
    main_module: mainModule,
    compatibility_date: config.compatibility_date,
    compatibility_flags: config.compatibility_flags,
    bindings,
    ...(last === undefined
      ? {}
      : {
          migrations: {
            new_tag: last.tag,
            steps: config.migrations.map(({ new_sqlite_classes }) => ({ new_sqlite_classes })),
          },
        }),
  };
}

/** What a node must know to run these modules. */
function featuresOf(modules: readonly Module[]): string[] {
  const kinds = new Set(modules.map(({ kind }) => kind));
  return [
    ...(kinds.has("wasm") ? [features.wasm] : []),
    ...(kinds.has("text") || kinds.has("data") ? [features.moduleKinds] : []),
  ];
}

/** The manifest of a Worker. It depends on nothing but its arguments, so the same project has the same version anywhere. */
export function manifestOf(config: WranglerConfig, mainModule: string, modules: readonly Module[]): Manifest {
  const metadata = metadataOf(config, mainModule);
  const classes = config.migrations.flatMap(({ new_sqlite_classes }) => new_sqlite_classes);
  const required = featuresOf(modules);
  return {
    schema_version: 1,
    version: versionOf(modules, JSON.stringify(metadata)),
    script_name: config.name,
    main_module: mainModule,
    do_classes: classes,
    sqlite_classes: classes,
    modules: inNameOrder(modules).map(({ name, kind, bytes }) => ({
      name,
      bytes: bytes.byteLength,
      sha256: moduleDigest(bytes),
      ...(kind === "esm" ? {} : { kind }),
    })),
    ...(required.length === 0 ? {} : { required_features: required }),
    raw_metadata: metadata,
  };
}
