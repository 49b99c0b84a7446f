// One-letter flags for a command that people know them from: a rewriting of its words, so that the schema stays the only
// description of its options.
import type { Command } from "@cellkit/daemon";

/** The command with other spellings for some of its flags, as `-X` for `--request`: as a word of its own, or with the value behind it. */
export function withShortFlags<X>(command: Command<X>, flags: Readonly<Record<string, string>>): Command<X> {
  return {
    ...command,
    parse: (identity) => command.parse({ ...identity, argv: expand(identity.argv, flags) }),
  };
}

function expand(argv: readonly string[], flags: Readonly<Record<string, string>>): string[] {
  const end = argv.indexOf("--");
  const rest = end < 0 ? [] : argv.slice(end);
  const words = (end < 0 ? argv : argv.slice(0, end)).flatMap((word) => {
    const long = Object.hasOwn(flags, word.slice(0, 2)) ? flags[word.slice(0, 2)] : undefined;
    if (long === undefined || word.startsWith("--")) return [word];
    return word.length === 2 ? [long] : [`${long}=${word.slice(2)}`];
  });
  return [...words, ...rest];
}
