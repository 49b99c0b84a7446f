// What the engine needs of a deployment, read once from its manifest: the rest of the package works with this plan and
// never looks into the upload metadata again.
import { type Deployment, type Module, reservedModules } from "@cellkit/deployment";
import { DeploymentUnsupportedError } from "../errors.ts";

/** A class whose objects are cells. `sqlite` says whether `ctx.storage.sql` is there. */
export interface CellClass {
  readonly className: string;
  readonly sqlite: boolean;
}

/** A member of the Worker's `env`. */
export type WorkerBinding =
  | { readonly kind: "text"; readonly name: string; readonly text: string }
  | { readonly kind: "json"; readonly name: string; readonly json: string }
  | { readonly kind: "cells"; readonly name: string; readonly className: string };

/** A Worker, ready to be put into a workerd config. The main module is the first one. */
export interface WorkerPlan {
  readonly scriptName: string;
  readonly version: string;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
  readonly modules: readonly Module[];
  readonly cells: readonly CellClass[];
  readonly bindings: readonly WorkerBinding[];
}

/** Modules of ours beside the Worker's; a deployment may not use these names. */
export const { entry: entryModuleName, runtime: runtimeModuleName, peer: peerModuleName } = reservedModules;
const ownModules: readonly string[] = Object.values(reservedModules);

/** The flag that gives `ctx.exports`, which the control entrypoint needs, and the first date that implies it. */
const exportsFlag = "enable_ctx_exports";
const exportsFlagDate = "2025-11-17";

/**
 * Reads a deployment into a plan.
 *
 * @throws DeploymentUnsupportedError (CELLKIT_ENGINE_DEPLOYMENT_UNSUPPORTED) naming the module that cannot be used
 */
export function planWorker({ scriptName, version, manifest, modules }: Deployment): WorkerPlan {
  const { main_module, do_classes, sqlite_classes, raw_metadata } = manifest;
  const label = `deployment ${scriptName}@${version}`;
  const taken = modules.find(({ name }) => ownModules.includes(name));
  if (taken !== undefined) {
    throw new DeploymentUnsupportedError(
      `${label}: the module name ${taken.name} is cellkit's own; rename the module and deploy again`,
    );
  }
  const main = modules.find(({ name, kind }) => name === main_module && kind === "esm");
  if (main === undefined) {
    throw new DeploymentUnsupportedError(
      `${label}: its main module ${main_module} is not among its ES modules; deploy again`,
    );
  }
  const bindings = raw_metadata.bindings.map(planBinding);
  const bound = bindings.flatMap((binding) => (binding.kind === "cells" ? [binding.className] : []));
  const sqlite = new Set(sqlite_classes);
  const classNames = [...new Set([...do_classes, ...sqlite_classes, ...bound])];
  return {
    scriptName,
    version,
    compatibilityDate: raw_metadata.compatibility_date,
    compatibilityFlags: planFlags(raw_metadata.compatibility_date, raw_metadata.compatibility_flags),
    modules: [main, ...modules.filter((module) => module !== main)],
    cells: classNames.map((className) => ({ className, sqlite: sqlite.has(className) })),
    bindings,
  };
}

function planBinding(binding: Deployment["manifest"]["raw_metadata"]["bindings"][number]): WorkerBinding {
  const { name } = binding;
  switch (binding.type) {
    case "plain_text":
      return { kind: "text", name, text: binding.text };
    case "json":
      return { kind: "json", name, json: JSON.stringify(binding.json) };
    case "durable_object_namespace":
      return { kind: "cells", name, className: binding.class_name };
  }
}

function planFlags(date: string, flags: readonly string[]): readonly string[] {
  if (date >= exportsFlagDate || flags.includes(exportsFlag)) return flags;
  return [...flags, exportsFlag];
}
