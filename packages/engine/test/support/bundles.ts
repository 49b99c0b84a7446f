// Deployments for tests, without a project directory.
import { createHash } from "node:crypto";
import type { Bundle, Module } from "@cellkit/deployment";

/** What a test Worker is made of; everything but the source has a default. */
export interface TestWorker {
  readonly scriptName?: string;
  /** Text of `index.js`. */
  readonly source: string;
  readonly modules?: readonly Module[];
  readonly classes?: readonly string[];
  /** Binding name to class name; default one binding for each class, its name in upper case. */
  readonly namespaces?: Readonly<Record<string, string>>;
  readonly vars?: Readonly<Record<string, unknown>>;
  readonly compatibilityDate?: string;
  readonly compatibilityFlags?: readonly string[];
}

/** A bundle as `bundleProject` makes them. */
export function testBundle(worker: TestWorker): Bundle {
  const classes = worker.classes ?? [];
  const main: Module = { name: "index.js", kind: "esm", bytes: new TextEncoder().encode(worker.source) };
  const modules = [main, ...(worker.modules ?? [])];
  const namespaces =
    worker.namespaces ?? Object.fromEntries(classes.map((name) => [name.toUpperCase(), name]));
  const bindings = [
    ...Object.entries(namespaces).map(
      ([name, class_name]) => ({ type: "durable_object_namespace", name, class_name }) as const,
    ),
    ...Object.entries(worker.vars ?? {}).map(([name, value]) =>
      typeof value === "string"
        ? ({ type: "plain_text", name, text: value } as const)
        : ({ type: "json", name, json: JSON.parse(JSON.stringify(value)) } as const),
    ),
  ];
  const raw_metadata = {
    main_module: main.name,
    compatibility_date: worker.compatibilityDate ?? "2026-10-01",
    compatibility_flags: [...(worker.compatibilityFlags ?? [])],
    bindings,
  };
  const scriptName = worker.scriptName ?? "chat";
  const version = digest([
    JSON.stringify(raw_metadata),
    ...modules.flatMap(({ name, bytes }) => [name, bytes]),
  ]);
  return {
    scriptName,
    version,
    modules,
    warnings: [],
    inputs: [],
    manifest: {
      schema_version: 1,
      version,
      script_name: scriptName,
      main_module: main.name,
      do_classes: [...classes],
      sqlite_classes: [...classes],
      modules: modules.map(({ name, kind, bytes }) => ({
        name,
        bytes: bytes.byteLength,
        sha256: digest([bytes]),
        ...(kind === "esm" ? {} : { kind }),
      })),
      raw_metadata,
    },
  };
}

function digest(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex").slice(0, 16);
}
