// `--help` and the README's table, both from the options of a schema.
import { type ConfigSchema, type Option, optionsOf } from "./option.ts";

const WIDTH = 100;

/** What `--help` tells besides the options. */
export interface HelpOptions {
  name: string;
  version: string;
  description: string;
  exitCodes?: Readonly<Record<number, string>>;
  examples?: ReadonlyArray<{ command: string; description: string }>;
}

/** The text of `--help`: usage, description, arguments, options by section, exit codes, examples. */
export function helpText(fields: readonly Option[], options: HelpOptions): string {
  const places = fields.filter(({ positional }) => positional);
  const usage = [options.name, ...places.map(usageOf), "[options]"].join(" ");
  const parts = [`Usage: ${usage}`, wrap(options.description, "")];
  if (places.length > 0) parts.push(block("Arguments", places.map(entry)));
  const flags = fields.filter(({ positional }) => !positional);
  for (const section of new Set(flags.map((field) => field.section))) {
    parts.push(block(section, flags.filter((field) => field.section === section).map(entry)));
  }
  parts.push(
    block("Every program", [
      "  -h, --help      Shows this text.",
      `  -V, --version   Shows the version (${options.version}).`,
      "  --print-config  Shows every option's value and where it came from, without starting.",
    ]),
  );
  const precedence = fields.some(({ env }) => env.length > 0)
    ? "A flag wins over its variable in [brackets], which wins over the default."
    : undefined;
  if (precedence !== undefined) parts.push(precedence);
  const codes = Object.entries(options.exitCodes ?? {});
  if (codes.length > 0)
    parts.push(
      block(
        "Exit codes",
        codes.map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`),
      ),
    );
  if (options.examples !== undefined && options.examples.length > 0) {
    parts.push(
      block(
        "Examples",
        options.examples.map(({ command, description }) => `  # ${description}\n  ${command}`),
      ),
    );
  }
  return `${parts.join("\n\n")}\n`;
}

function usageOf({ placeholder, required, kind }: Option): string {
  const word = kind === "list" ? `${placeholder} ...` : placeholder;
  return required ? word : `[${word}]`;
}

function block(title: string, lines: readonly string[]): string {
  return `${title}:\n${lines.join("\n")}`;
}

function entry(field: Option): string {
  const facts = [
    ...(field.env.length > 0 ? [`[${field.env.join(", ")}]`] : []),
    ...(field.required ? ["required"] : []),
    ...(field.defaultText === undefined
      ? []
      : [`default: ${field.defaultText === "" ? '""' : field.defaultText}`]),
    ...(field.kind === "list" && !field.positional ? ["may be given several times"] : []),
  ];
  const head = `  ${synopsis(field)}${facts.length === 0 ? "" : `  ${facts.join("; ")}`}`;
  return `${head}\n${wrap(field.description, "      ")}`;
}

/** `--listen HOST:PORT`, `--[no-]reload`, `DIR`, or the variable where there is no flag. */
function synopsis({ flag, kind, placeholder, positional, env }: Option): string {
  if (positional) return placeholder;
  if (flag === undefined) return env[0] ?? "";
  return kind === "boolean" ? `--[no-]${flag}` : `--${flag} ${placeholder}`;
}

/** Breaks text at spaces so that no line is longer than WIDTH where a space allows it; keeps its own line breaks. */
function wrap(text: string, indent: string): string {
  return text
    .split("\n")
    .map((paragraph) => {
      const lines: string[] = [];
      let line = indent;
      for (const word of paragraph.split(" ")) {
        if (line.length > indent.length && line.length + 1 + word.length > WIDTH) {
          lines.push(line);
          line = indent;
        }
        line += line.length > indent.length ? ` ${word}` : word;
      }
      return [...lines, line].join("\n");
    })
    .join("\n");
}

/** The options of a schema as a Markdown table, for a README. */
export function optionsTable(schema: ConfigSchema): string {
  const rows = optionsOf(schema).map((field) => {
    const cells = [
      field.flag === undefined && !field.positional ? "–" : code(synopsis(field)),
      field.env.length === 0 ? "–" : field.env.map(code).join(", "),
      field.required ? "required" : field.defaultText === undefined ? "–" : code(field.defaultText || '""'),
      field.description.replaceAll("\n", " "),
    ];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| flag | environment | default | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

/**
 * A Markdown text whose part between `<!-- options -->` and `<!-- /options -->` is the table of the schema. A test that
 * expects the README to be equal to its own result keeps the two together:
 * `expect(withOptionsTable(readme, schema)).toBe(readme)`.
 */
export function withOptionsTable(markdown: string, schema: ConfigSchema): string {
  return markdown.replace(
    /(<!-- options -->\n)[\s\S]*?(<!-- \/options -->)/,
    (_, begin: string, end: string) => `${begin}\n${optionsTable(schema)}\n\n${end}`,
  );
}
