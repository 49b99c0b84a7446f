// Flags, environment and defaults to one checked object. Precedence: flag, environment, default. Every problem is
// collected before anything is thrown, so that a user mends all of them in one go.
import type { z } from "zod";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { parseArguments } from "./arguments.ts";
import { usualExitCodeMeanings } from "./exit-code.ts";
import { helpText } from "./help.ts";
import { type ConfigSchema, type Option, optionsOf } from "./option.ts";
import { didYouMean } from "./suggest.ts";

/** A variable with the program's prefix that is no option of the schema, yet known. */
export interface OtherVariable {
  /** `none`: accepted, does nothing, a warning says so. `refused`: a problem, as ignoring it would be unsafe. */
  effect: "none" | "refused";
  /** Why, and what to use instead; ends the sentence "CELLD_X has no effect: …". */
  reason: string;
}

/** Who is asked, and with what. */
export interface ParseOptions {
  /** The command's name, as users type it. */
  name: string;
  version: string;
  /** What the program is for; the first lines of `--help`. */
  description: string;
  /** `process.argv.slice(2)` of the caller. */
  argv: readonly string[];
  /** `process.env` of the caller. */
  env: Readonly<Record<string, string | undefined>>;
  /** Variables that start with it and that nobody knows become warnings. Default: none, so no such warnings. */
  envPrefix?: string;
  /** Known variables that are no options; a name that ends in `*` stands for all that start so. Default: none. */
  otherVariables?: Readonly<Record<string, OtherVariable>>;
  /** The table of exit codes in `--help`. Default: those of {@link exitCodeMeanings} that every daemon has, which is all but 3. */
  exitCodes?: Readonly<Record<number, string>>;
  /** Command lines worth copying, each with what it does. Default: none. */
  examples?: ReadonlyArray<{ command: string; description: string }>;
  /**
   * Where nothing is given at all (no argument, no variable of `envPrefix`), help is shown: as the `help` of the error where options are
   * missing, so that a service that lost its arguments does not look like one that ended well; else as if it was asked for. Default: false.
   */
  helpWhenBare?: boolean;
}

/** What the user asked for. */
export type Parsed<C> =
  | {
      kind: "config";
      config: C;
      /** Where each value came from: the flag or variable by name, or "default". */
      from: Readonly<Record<string, string>>;
      /** Sentences to log once logs exist: unknown variables, variables without effect. */
      warnings: readonly string[];
    }
  | { kind: "help" | "version" | "print-config"; text: string };

/**
 * Reads the configuration of one program from its flags and environment.
 *
 * @throws {@link ConfigError} (`CELLKIT_DAEMON_CONFIG`) with all problems at once; with `help` where `helpWhenBare` says so.
 * @throws {@link SchemaError} (`CELLKIT_DAEMON_SCHEMA`) when the schema itself cannot be turned into flags.
 */
export function parseConfig<S extends ConfigSchema>(schema: S, options: ParseOptions): Parsed<z.output<S>> {
  const fields = optionsOf(schema);
  const given = parseArguments(fields, options.argv);
  const help = () => helpText(fields, { exitCodes: usualExitCodeMeanings, ...options });
  if (given.asked === "help") return { kind: "help", text: help() };
  if (given.asked === "version") return { kind: "version", text: `${options.name} ${options.version}\n` };

  const problems: ConfigProblem[] = [...given.problems];
  const input: Record<string, unknown> = {};
  const from: Record<string, string> = {};
  const texts = new Map<string, string>();
  for (const field of fields) {
    const source = sourceOf(field, given.texts, options.env);
    from[field.key] = source?.name ?? "default";
    if (source === undefined) continue;
    texts.set(field.key, source.texts.join(","));
    const value = readText(field, source);
    if (value.problem === undefined) input[field.key] = value.value;
    else problems.push({ where: source.name, ...shown(field, source.texts[0]), message: value.problem });
  }
  const warnings = otherVariables(fields, options, problems);
  const result = schema.safeParse(input);
  if (!result.success) {
    problems.push(...problemsOf(result.error.issues, fields, from, texts, problems));
  }
  const showsHelp = options.helpWhenBare === true && isBare(options);
  if (problems.length > 0 || !result.success)
    throw new ConfigError(options.name, problems, showsHelp ? { help: help() } : {});
  if (showsHelp) return { kind: "help", text: help() };
  if (given.asked === "print-config")
    return { kind: "print-config", text: printed(fields, result.data, from) };
  return { kind: "config", config: result.data, from, warnings };
}

function isBare({ argv, env, envPrefix }: ParseOptions): boolean {
  return (
    argv.length === 0 &&
    (envPrefix === undefined || !Object.keys(env).some((name) => name.startsWith(envPrefix)))
  );
}

interface Source {
  name: string;
  texts: readonly string[];
}

function sourceOf(
  field: Option,
  flags: ReadonlyMap<string, readonly string[]>,
  env: ParseOptions["env"],
): Source | undefined {
  const isSet = (texts: readonly string[]) => !(field.emptyIsUnset && texts.every((text) => text === ""));
  const words = flags.get(field.key);
  if (words !== undefined && isSet(words)) return { name: nameOf(field), texts: words };
  for (const name of field.env) {
    const text = env[name];
    if (text === undefined || !isSet([text])) continue;
    if (field.kind !== "list") return { name, texts: [text] };
    const items = text.split(",").map((item) => item.trim());
    return { name, texts: items.filter((item) => item !== "") };
  }
  return undefined;
}

function nameOf(field: Option): string {
  return field.flag === undefined
    ? field.positional
      ? field.placeholder
      : (field.env[0] ?? "")
    : `--${field.flag}`;
}

function readText(field: Option, { texts }: Source): { value?: unknown; problem?: string } {
  const text = texts[0] ?? "";
  switch (field.kind) {
    case "list":
      return { value: texts };
    case "text":
      return { value: text };
    case "boolean":
      if (text === "0" || text === "1") return { value: text === "1" };
      return { problem: "must be 0 or 1" };
    case "number":
      if (/^[+-]?(\d+(\.\d*)?|\.\d+)$/.test(text)) return { value: Number(text) };
      return { problem: "must be a number in digits" };
  }
}

/** What was given, cut to a bearable length; nothing of a secret, and of a URL that may hold one its scheme. */
function shown(field: Option, text: string | undefined): { value?: string } {
  if (text === undefined || field.secret) return {};
  // A flag of this kind mostly has no value, so that a 1 would be nothing that anybody wrote.
  if (field.kind === "boolean" && (text === "0" || text === "1")) return {};
  const scheme = /^[a-z][a-z0-9+.-]*:(?=.*[@?#])/is.exec(text)?.[0];
  if (scheme !== undefined) return { value: `${scheme}…` };
  if (text.includes("@")) return { value: `…${text.slice(text.lastIndexOf("@")).slice(0, 80)}` };
  return { value: text.length > 80 ? `${text.slice(0, 80)}…` : text };
}

function otherVariables(
  fields: readonly Option[],
  options: ParseOptions,
  problems: ConfigProblem[],
): string[] {
  const { env, envPrefix, otherVariables: others = {} } = options;
  const own = fields.flatMap((field) => field.env);
  const warnings: string[] = [];
  for (const name of Object.keys(env).sort()) {
    if (own.includes(name) || env[name] === undefined) continue;
    const entry = Object.entries(others).find(([other]) =>
      other.endsWith("*") ? name.startsWith(other.slice(0, -1)) : name === other,
    );
    if (entry !== undefined) {
      const { effect, reason } = entry[1];
      if (effect === "refused") problems.push({ where: name, message: `is refused: ${reason}` });
      else warnings.push(`${name} has no effect: ${reason}`);
    } else if (envPrefix !== undefined && name.startsWith(envPrefix)) {
      warnings.push(`${name} is not a variable of ${options.name} and has no effect${didYouMean(name, own)}`);
    }
  }
  return warnings;
}

function problemsOf(
  issues: readonly z.core.$ZodIssue[],
  fields: readonly Option[],
  from: Readonly<Record<string, string>>,
  texts: ReadonlyMap<string, string>,
  known: readonly ConfigProblem[],
): ConfigProblem[] {
  return issues.flatMap((issue): ConfigProblem[] => {
    const field = fields.find(({ key }) => key === issue.path[0]);
    if (field === undefined) return [{ where: "options", message: lowerFirst(issue.message) }];
    const given = from[field.key] ?? "default";
    if (given !== "default") {
      if (known.some(({ where }) => where === given)) return [];
      // A schema's message may hold the value; a secret's never leaves here.
      if (field.secret) return [{ where: given, message: `does not fit: ${issue.code}` }];
      return [{ where: given, ...shown(field, texts.get(field.key)), message: messageOf(issue, field) }];
    }
    if (!field.required) return [{ where: nameOf(field), message: lowerFirst(issue.message) }];
    const name = nameOf(field);
    if (known.some(({ where }) => where === name)) return [];
    const variables = field.env.filter((variable) => variable !== name);
    return [
      {
        where: name,
        message:
          variables.length === 0
            ? `is required: ${field.description}`
            : `is required (or set ${variables.join(" or ")}): ${field.description}`,
      },
    ];
  });
}

/** A schema's own sentence; of zod's about numbers, one that says what may stand there. */
function messageOf({ code, message }: z.core.$ZodIssue, { kind, range }: Option): string {
  if (kind !== "number" || !/^(Too (small|big)|Invalid input): /.test(message)) return lowerFirst(message);
  if (code !== "invalid_type") return `must be ${range}`;
  return `must be a whole number${range === undefined ? "" : `, ${range}`}`;
}

/** As it goes on in a sentence; an abbreviation such as TLS stays one. */
function lowerFirst(message: string): string {
  if (/^[A-Z]{2}/.test(message)) return message;
  return message.slice(0, 1).toLowerCase() + message.slice(1);
}

function printed(
  fields: readonly Option[],
  config: Record<string, unknown>,
  from: Readonly<Record<string, string>>,
): string {
  const lines = fields.map(({ key, secret }) => {
    const value = config[key];
    const shown = secret && value !== undefined ? "(not shown)" : (value ?? null);
    return `  ${JSON.stringify(key)}: ${JSON.stringify({ value: shown, from: from[key] ?? "default" })}`;
  });
  return `{\n${lines.join(",\n")}\n}\n`;
}
