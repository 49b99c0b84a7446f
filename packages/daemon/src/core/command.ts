// Subcommands over the same parser: a tree whose leaves have a schema each. `cellkit bucket serve DIR --listen …` goes
// down the words `bucket` and `serve`; from there on it is one program like any daemon. The tree has names and summaries alone, which
// is all that the list of commands shows; a command itself is loaded when it was named.
import type { z } from "zod";
import { ConfigError } from "../errors.ts";
import type { ConfigSchema } from "./option.ts";
import { type Parsed, type ParseOptions, parseConfig } from "./parse-config.ts";
import { didYouMean } from "./suggest.ts";

/** One command: its options, what it does. X is what the program hands to all its commands. */
export interface CommandDefinition<S extends ConfigSchema, X>
  extends Omit<ParseOptions, "name" | "version" | "argv" | "env" | "description"> {
  /** The first lines of its `--help`. Default: the summary that {@link listedCommand} was given, as a sentence. */
  description?: string;
  schema: S;
  /** Does the work; answers with the exit code. */
  run(config: z.output<S>, context: X): Promise<number>;
}

/** A command that can be listed; made by {@link defineCommand}. */
export interface Command<X> {
  parse(options: ParseIdentity): ParsedCommand<X>;
}

/** A command's place in a {@link CommandGroup}; made by {@link listedCommand}. */
export interface ListedCommand<X> {
  readonly kind: "command";
  /** One line for the list of commands. */
  readonly summary: string;
  load(): Command<X> | Promise<Command<X>>;
}

/** Commands under one word. */
export interface CommandGroup<X> {
  readonly kind: "group";
  /** One line for the list of commands. */
  readonly summary: string;
  readonly commands: Readonly<Record<string, ListedCommand<X> | CommandGroup<X>>>;
}

/** Who is asked, and with what; `description` is for a command that has none of its own. */
export type ParseIdentity = Pick<ParseOptions, "name" | "version" | "argv" | "env" | "description">;

/** What the user asked for. */
export type ParsedCommand<X> =
  | {
      kind: "run";
      /** The words that chose it: `cellkit bucket serve`. */
      name: string;
      warnings: readonly string[];
      run(context: X): Promise<number>;
    }
  | { kind: "help" | "version" | "print-config"; text: string };

/** Ties a command's schema to its function, so that `run` is given what its own schema says. */
export function defineCommand<S extends ConfigSchema, X>(definition: CommandDefinition<S, X>): Command<X> {
  const { schema, run, ...rest } = definition;
  return {
    parse(identity) {
      const parsed: Parsed<z.output<S>> = parseConfig(schema, { ...identity, ...rest });
      if (parsed.kind !== "config") return parsed;
      return {
        kind: "run",
        name: identity.name,
        warnings: parsed.warnings,
        run: (context) => run(parsed.config, context),
      };
    },
  };
}

/**
 * Says where a command is, so that the list of commands needs no more of it.
 *
 * @param summary one line, a capital first, no full stop
 * @param load gives the command once it was named: `async () => (await import("./serve.ts")).serve`, or `() => serve`
 */
export function listedCommand<X>(summary: string, load: ListedCommand<X>["load"]): ListedCommand<X> {
  return { kind: "command", summary, load };
}

/** Puts commands under one word, or makes the root of a program. */
export function commandGroup<X>(summary: string, commands: CommandGroup<X>["commands"]): CommandGroup<X> {
  return { kind: "group", summary, commands };
}

/**
 * Finds the command that a command line names, loads it, and reads its options.
 *
 * @throws {@link ConfigError} (`CELLKIT_DAEMON_CONFIG`) for no command, with the list of them as its `help`; for an unknown one;
 * for its options, all at once. And what loading throws
 */
export async function parseCommand<X>(
  root: CommandGroup<X>,
  identity: Omit<ParseIdentity, "description">,
): Promise<ParsedCommand<X>> {
  const { version, env } = identity;
  let { name, argv } = identity;
  let node: ListedCommand<X> | CommandGroup<X> = root;
  while (node.kind === "group") {
    const [word, ...rest] = argv;
    if (word === undefined)
      throw new ConfigError(name, [{ where: "COMMAND", message: "is required" }], {
        help: groupHelp(node, name),
      });
    if (word === "--help" || word === "-h") return { kind: "help", text: groupHelp(node, name) };
    if (word === "--version" || word === "-V")
      return { kind: "version", text: `${identity.name} ${version}\n` };
    const words: string[] = Object.keys(node.commands);
    const next: ListedCommand<X> | CommandGroup<X> | undefined = words.includes(word)
      ? node.commands[word]
      : undefined;
    if (next === undefined) {
      const what = word.startsWith("-")
        ? "a command comes first"
        : `unknown command${didYouMean(word, words)}`;
      throw new ConfigError(name, [{ where: word.slice(0, 100), message: what }]);
    }
    name = `${name} ${word}`;
    argv = rest;
    node = next;
  }
  const command = await node.load();
  return command.parse({ name, version, argv, env, description: `${node.summary}.` });
}

function groupHelp<X>(group: CommandGroup<X>, name: string): string {
  const lines = listed(group, "");
  const width = Math.max(...lines.map(([words]) => words.length));
  return [
    `Usage: ${name} COMMAND [options]`,
    "",
    `${group.summary}.`,
    "",
    "Commands:",
    ...lines.map(([words, summary]) => `  ${words.padEnd(width)}  ${summary}`),
    "",
    `\`${name} COMMAND --help\` shows the options of one, \`${name} --version\` the version.`,
    "",
  ].join("\n");
}

/** Every command below a group with the words that lead to it. */
function listed<X>(group: CommandGroup<X>, before: string): Array<[words: string, summary: string]> {
  return Object.entries(group.commands).flatMap(
    ([word, node]): Array<[string, string]> =>
      node.kind === "group" ? listed(node, `${before}${word} `) : [[`${before}${word}`, node.summary]],
  );
}
