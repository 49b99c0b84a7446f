// From one strict zod object to the list of options that the parser, `--help`, the README's table and the chart all
// read. The schema is the only source: nothing about an option is written down twice.
import { z } from "zod";
import { SchemaError } from "../errors.ts";

/** A configuration schema: `z.strictObject({ … })` whose fields carry {@link OptionMeta} through `.meta()`. */
export type ConfigSchema = z.ZodObject;

/** What `.meta()` of a field may say. zod's own keys (`title`, `examples`, `deprecated`) are allowed beside these. */
export interface OptionMeta {
  /** One or two sentences: what it does, its limits. Required. */
  description: string;
  /** Environment variable, or several in order of preference (`["AWS_REGION", "AWS_DEFAULT_REGION"]`). Default: none. */
  env?: string | readonly string[];
  /** Heading in `--help` and the README's table. Default: "Options". */
  section?: string;
  /** Unit of a number, shown as the placeholder: `ms`, `bytes`. Default: taken from the key's suffix (`Ms`, `Bytes`). */
  unit?: string;
  /** What stands for the value in `--help`. Default: the unit, or a word for the type. */
  placeholder?: string;
  /** The value is never shown: not in errors, not by `--print-config`. Default: false. */
  secret?: boolean;
  /** Empty text counts as not given. Default: false. */
  emptyIsUnset?: boolean;
  /** Text for a default that is computed or lies elsewhere: "random", "80 % of memory". Default: the schema's own default. */
  defaultText?: string;
  /** `false` keeps the option out of the flags: it comes from the environment only. Default: true. */
  flag?: boolean;
  /** An argument by position instead of a flag, in the order of the schema's keys. A list takes all that remain. Default: false. */
  positional?: boolean;
}

/** How the text of a flag or variable becomes a value before the schema sees it. */
export type OptionKind = "text" | "number" | "boolean" | "list";

/** One option, as derived from a field of the schema. */
export interface Option {
  readonly key: string;
  /** `shutdown-drain-ms`, without dashes; undefined for arguments by position and options of the environment only. */
  readonly flag: string | undefined;
  readonly env: readonly string[];
  readonly kind: OptionKind;
  readonly description: string;
  readonly section: string;
  readonly placeholder: string;
  readonly secret: boolean;
  readonly emptyIsUnset: boolean;
  readonly positional: boolean;
  /** Neither a default nor optional. */
  readonly required: boolean;
  /** The default as text, undefined where there is none. */
  readonly defaultText: string | undefined;
  /** The words an enum accepts; empty where anything may stand. */
  readonly choices: readonly string[];
  /** What a number may be, to end a sentence: `1 to 16`, `at least 1`; undefined where any may stand, and for other kinds. */
  readonly range: string | undefined;
}

/** Flags that every program has; a schema may not use them. */
const reservedFlags = ["help", "version", "print-config"] as const;

const metaSchema = z.strictObject({
  description: z.string().min(1),
  env: z
    .union([z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.array(z.string().regex(/^[A-Z][A-Z0-9_]*$/)).min(1)])
    .optional(),
  section: z.string().optional(),
  unit: z.string().optional(),
  placeholder: z.string().optional(),
  secret: z.boolean().optional(),
  emptyIsUnset: z.boolean().optional(),
  defaultText: z.string().optional(),
  flag: z.boolean().optional(),
  positional: z.boolean().optional(),
  id: z.string().optional(),
  title: z.string().optional(),
  examples: z.array(z.unknown()).optional(),
  deprecated: z.boolean().optional(),
});

/** `internalListen` to `internal-listen`, `s3Endpoint` to `s3-endpoint`. */
function kebabCase(key: string): string {
  return key.replace(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase();
}

/**
 * The options of a schema, in the order of its keys.
 *
 * @throws {@link SchemaError} (`CELLKIT_DAEMON_SCHEMA`) when the object is not strict, a field has no description or an
 * unknown key in its meta, a type cannot be written as text, or two options share a flag or a variable.
 */
export function optionsOf(schema: ConfigSchema): Option[] {
  if (schema.def.catchall?._zod.def.type !== "never") {
    throw new SchemaError("(the whole)", "is not strict; build it with z.strictObject");
  }
  const options = Object.entries(schema.shape).map(([key, field]) => optionOf(key, field as z.ZodType));
  const taken = new Map<string, string>(reservedFlags.map((flag) => [`--${flag}`, "every program"]));
  for (const option of options) {
    for (const name of namesOf(option)) {
      const owner = taken.get(name);
      if (owner !== undefined) throw new SchemaError(option.key, `${name} already belongs to ${owner}`);
      taken.set(name, option.key);
    }
  }
  const arguments_ = options.filter(({ positional }) => positional);
  for (const [index, { key, kind }] of arguments_.entries()) {
    if (kind === "list" && index < arguments_.length - 1) {
      throw new SchemaError(key, "a list of arguments must be the last one");
    }
  }
  return options;
}

function namesOf({ flag, env, kind }: Option): string[] {
  const flags = flag === undefined ? [] : kind === "boolean" ? [`--${flag}`, `--no-${flag}`] : [`--${flag}`];
  return [...flags, ...env];
}

function optionOf(key: string, field: z.ZodType): Option {
  const { meta: rawMeta, base, hasDefault, defaultValue, optional } = unwrap(field);
  const parsed = metaSchema.safeParse(rawMeta ?? {});
  if (!parsed.success) throw new SchemaError(key, `its meta: ${z.prettifyError(parsed.error)}`);
  const meta = parsed.data;
  const env = meta.env === undefined ? [] : typeof meta.env === "string" ? [meta.env] : meta.env;
  const positional = meta.positional ?? false;
  const kind = kindOf(key, base);
  const choices = choicesOf(base);
  if (positional && kind === "boolean")
    throw new SchemaError(key, "an argument by position cannot be a boolean");
  if (meta.flag === false && env.length === 0 && !positional) {
    throw new SchemaError(key, "has neither a flag nor a variable");
  }
  return {
    key,
    flag: positional || meta.flag === false ? undefined : kebabCase(key),
    env,
    kind,
    description: meta.description,
    section: meta.section ?? "Options",
    placeholder: meta.placeholder ?? placeholderOf(key, kind, choices, meta.unit),
    secret: meta.secret ?? false,
    emptyIsUnset: meta.emptyIsUnset ?? false,
    positional,
    required: !hasDefault && !optional && meta.defaultText === undefined,
    defaultText: meta.defaultText ?? (hasDefault ? textOfDefault(defaultValue) : undefined),
    choices,
    range: rangeOf(base),
  };
}

interface Unwrapped {
  meta: Record<string, unknown> | undefined;
  base: z.ZodType;
  hasDefault: boolean;
  defaultValue: unknown;
  optional: boolean;
}

/** Looks through defaults, optionals and pipes; the outermost meta with a description counts. */
function unwrap(field: z.ZodType): Unwrapped {
  const result: Unwrapped = {
    meta: undefined,
    base: field,
    hasDefault: false,
    defaultValue: undefined,
    optional: false,
  };
  for (;;) {
    const meta = result.base.meta();
    if (meta?.["description"] !== undefined) result.meta ??= meta;
    const def = result.base.def as {
      type: string;
      innerType?: z.ZodType;
      in?: z.ZodType;
      defaultValue?: unknown;
    };
    if (def.type === "default" || def.type === "prefault") {
      if (!result.hasDefault) result.defaultValue = def.defaultValue;
      result.hasDefault = true;
    }
    if (def.type === "optional") result.optional = true;
    const inner = def.innerType ?? (def.type === "pipe" ? def.in : undefined);
    if (inner === undefined) return result;
    result.base = inner;
  }
}

function kindOf(key: string, base: z.ZodType): OptionKind {
  switch (base.def.type) {
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return "list";
    case "string":
    case "enum":
    case "literal":
    case "template_literal":
    case "union":
    case "custom":
    case "transform":
      return "text";
    default:
      throw new SchemaError(key, `a value of type ${base.def.type} cannot be written as text`);
  }
}

function choicesOf(base: z.ZodType): string[] {
  const def = base.def as { type: string; entries?: Record<string, unknown>; values?: unknown[] };
  if (def.type === "enum") return Object.values(def.entries ?? {}).map(String);
  if (def.type === "literal") return (def.values ?? []).map(String);
  return [];
}

function rangeOf(base: z.ZodType): string | undefined {
  if (!(base instanceof z.ZodNumber)) return undefined;
  // What an integer has of its own accord is not worth saying.
  const isSaid = (bound: number | null): bound is number =>
    bound !== null && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  const { minValue: min, maxValue: max } = base;
  if (isSaid(min) && isSaid(max)) return `${min} to ${max}`;
  if (isSaid(min)) return `at least ${min}`;
  return isSaid(max) ? `at most ${max}` : undefined;
}

function placeholderOf(key: string, kind: OptionKind, choices: readonly string[], unit?: string): string {
  if (kind === "boolean") return "";
  if (choices.length > 0) return choices.join("|");
  if (unit !== undefined) return unit.toUpperCase();
  const suffix = /(Ms|Bytes|Count|Ratio)$/.exec(key)?.[1];
  if (suffix !== undefined) return suffix.toUpperCase();
  return kind === "number" ? "NUMBER" : kebabCase(key).toUpperCase();
}

function textOfDefault(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
