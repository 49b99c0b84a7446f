/** A Wrangler configuration: one strict schema, and everything wrong with a file in one answer. */
import { z } from "zod";
import { compatibilityProblems } from "./compatibility.ts";
import { parseJsonc } from "./jsonc.ts";
import { bindingName, calendarDay, className, compatibilityFlag, scriptName } from "./names.ts";
import { ignoredKeys, isPlatformKey, refusalOfKey, supported } from "./wrangler-keys.ts";

const durableObjectBinding = z.strictObject({
  name: bindingName,
  class_name: className,
  /** Only the script itself: there is no other one in a fleet. */
  script_name: z.string().optional(),
});

const migration = z.strictObject({
  tag: z.string().min(1, "a migration's tag cannot be empty").max(128),
  new_sqlite_classes: z.array(className).max(1000).default([]),
});

const schema = z.strictObject({
  $schema: z.string().optional(),
  name: scriptName,
  main: z.string().min(1, "main is the path of the Worker's entry file"),
  compatibility_date: calendarDay,
  compatibility_flags: z.array(compatibilityFlag).max(200).default([]),
  durable_objects: z
    .strictObject({ bindings: z.array(durableObjectBinding).max(500).default([]) })
    .default({ bindings: [] }),
  migrations: z.array(migration).max(1000).default([]),
  vars: z.record(bindingName, z.json()).default({}),
  no_bundle: z.boolean().default(false),
});

/** A configuration that holds only what a node can give: defaults are filled in, keys without effect are gone. */
export type WranglerConfig = Omit<z.infer<typeof schema>, "$schema">;

/** The configuration with the warnings about ignored keys, or all problems of the file, one sentence each. */
export type WranglerConfigResult =
  | { readonly kind: "config"; readonly config: WranglerConfig; readonly warnings: readonly string[] }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** @param text the content of a wrangler.json or wrangler.jsonc */
export function parseWranglerConfig(text: string): WranglerConfigResult {
  const parsed = parseJsonc(text);
  if (parsed.kind === "problems") return parsed;
  const { value } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { kind: "problems", problems: ["1:1 the configuration is one object"] };
  }
  const ignored = Object.keys(value).filter((key) => Object.hasOwn(ignoredKeys, key));
  const effective = Object.fromEntries(Object.entries(value).filter(([key]) => !ignored.includes(key)));
  const checked = schema.safeParse(effective, { reportInput: true });
  if (!checked.success) return { kind: "problems", problems: checked.error.issues.flatMap(sentences) };
  const problems = contradictions(checked.data);
  if (problems.length > 0) return { kind: "problems", problems };
  const { $schema: _, ...config } = checked.data;
  return {
    kind: "config",
    config,
    warnings: ignored.map((key) => `${key} is ignored: ${ignoredKeys[key]}`),
  };
}

/** Migrations that would move or delete data, each with what to do about it. */
const refusedMigrations: Readonly<Record<string, string>> = {
  new_classes: "cells keep their data in SQLite: name the class in new_sqlite_classes",
  renamed_classes: "renaming is not supported, a cell's id holds the name of its class: keep the name",
  deleted_classes: "deleting is not supported: leave the class in new_sqlite_classes and remove its binding",
  transferred_classes: "a fleet runs one script, so there is none to take a class from",
};

/** One issue of the schema as sentences: an unknown key each, or the path and what is wrong there. */
function sentences(issue: z.core.$ZodIssue): string[] {
  const path = z.core.toDotPath(issue.path);
  if (issue.code === "unrecognized_keys") {
    const platform = path === "" ? issue.keys.filter(isPlatformKey) : [];
    const others = issue.keys
      .filter((key) => !platform.includes(key))
      .map((key) => {
        if (path === "") return refusalOfKey(key);
        const answer =
          issue.path[0] === "migrations" && Object.hasOwn(refusedMigrations, key)
            ? refusedMigrations[key]
            : undefined;
        return `${path}.${key} is not supported${answer === undefined ? "" : `: ${answer}`}`;
      });
    if (platform.length === 0) return others;
    const are = platform.length === 1 ? "is" : "are";
    return [`${platform.join(", ")} ${are} not supported; ${supported}`, ...others];
  }
  if (issue.code === "invalid_key") return issue.issues.map(({ message }) => `${path}: ${message}`);
  const missing = issue.code === "invalid_type" && issue.input === undefined;
  return [missing ? `${path} is missing` : `${path}: ${issue.message.replace(/^Invalid input: /, "")}`];
}

/** What each member may be on its own, but not together with the others. */
function contradictions(config: WranglerConfig): string[] {
  const problems = compatibilityProblems(config.compatibility_date, config.compatibility_flags);
  const names = new Set<string>();
  const declared = config.migrations.flatMap((step) => step.new_sqlite_classes);
  for (const [index, { name, class_name, script_name }] of config.durable_objects.bindings.entries()) {
    const path = `durable_objects.bindings[${index}]`;
    if (names.has(name)) problems.push(`${path}: another binding is named ${name} too`);
    names.add(name);
    if (script_name !== undefined && script_name !== config.name) {
      problems.push(
        `${path}.script_name is ${script_name}: a fleet runs one script, so only classes of ${config.name} itself can be bound`,
      );
    } else if (!declared.includes(class_name)) {
      problems.push(
        `${path}: no migration declares ${class_name}: add it to new_sqlite_classes of a migration`,
      );
    }
  }
  for (const name of Object.keys(config.vars)) {
    if (names.has(name)) problems.push(`vars.${name}: a durable object binding is named ${name} too`);
  }
  for (const [what, values] of [
    ["migrations: the tag", config.migrations.map(({ tag }) => tag)],
    ["migrations: the class", declared],
    ["compatibility_flags: the flag", config.compatibility_flags],
  ] as const) {
    for (const value of new Set(values.filter((value, index) => values.indexOf(value) !== index))) {
      problems.push(`${what} ${value} appears twice`);
    }
  }
  return problems;
}
