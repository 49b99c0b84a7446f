// argv to texts, by the options' own rules. `--flag value` and `--flag=value`; a boolean is `--flag`, `--no-flag` or
// `--flag=0|1` and takes no word after it; `--` ends the flags. A word that starts with `--` is never taken as a value:
// `--bucket --region x` is a forgotten value, not a bucket named "--region".
import type { ConfigProblem } from "../errors.ts";
import type { Option } from "./option.ts";
import { didYouMean } from "./suggest.ts";

/** What a command line gave. */
export interface ParsedArguments {
  /** Texts by key of the schema; more than one only for lists. Booleans are "0" or "1". */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  /** Which of every program's own flags was given first, if one was. */
  readonly asked: "help" | "version" | "print-config" | undefined;
  readonly problems: readonly ConfigProblem[];
}

/** Reads a command line. Never throws: what does not fit is in `problems`. */
export function parseArguments(options: readonly Option[], argv: readonly string[]): ParsedArguments {
  const flags = new Map<string, { option: Option; negated: boolean }>();
  for (const option of options) {
    if (option.flag === undefined) continue;
    flags.set(`--${option.flag}`, { option, negated: false });
    if (option.kind === "boolean") flags.set(`--no-${option.flag}`, { option, negated: true });
  }
  const texts = new Map<string, string[]>();
  const problems: ConfigProblem[] = [];
  const words: string[] = [];
  let asked: ParsedArguments["asked"];

  const give = (option: Option, where: string, text: string): void => {
    const given = texts.get(option.key);
    if (given === undefined) texts.set(option.key, [text]);
    else if (option.kind === "list") given.push(text);
    else problems.push({ where, message: "given more than once; give it once" });
  };

  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? "";
    if (word === "--") {
      words.push(...argv.slice(index + 1));
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      words.push(word);
      continue;
    }
    const own = ownFlag(word);
    if (own !== undefined) {
      asked ??= own;
      continue;
    }
    const equals = word.indexOf("=");
    const name = equals < 0 ? word : word.slice(0, equals);
    const value = equals < 0 ? undefined : word.slice(equals + 1);
    const known = flags.get(name);
    if (known === undefined) {
      problems.push({ where: name, message: `unknown flag${didYouMean(name, [...flags.keys(), "--help"])}` });
      // The word after it was probably its value: it must not be complained about as well.
      const next = argv[index + 1];
      if (value === undefined && next !== undefined && !next.startsWith("-")) index += 1;
      continue;
    }
    const { option, negated } = known;
    if (option.kind === "boolean") {
      if (value === undefined) give(option, name, negated ? "0" : "1");
      else if (negated)
        problems.push({ where: name, message: `takes no value; write --${option.flag}=0 or =1` });
      else give(option, name, value);
    } else if (value !== undefined) {
      give(option, name, value);
    } else if (isValue(argv[index + 1])) {
      index += 1;
      give(option, name, argv[index] ?? "");
    } else {
      problems.push({
        where: name,
        message: `needs a value: ${name} ${option.placeholder}, or ${name}=${option.placeholder}`,
      });
    }
  }
  placeWords(options, words, give, problems);
  return { texts, asked, problems };
}

function isValue(word: string | undefined): word is string {
  return word !== undefined && !word.startsWith("--");
}

function ownFlag(word: string): ParsedArguments["asked"] {
  if (word === "--help" || word === "-h") return "help";
  if (word === "--version" || word === "-V") return "version";
  return word === "--print-config" ? "print-config" : undefined;
}

function placeWords(
  options: readonly Option[],
  words: readonly string[],
  give: (option: Option, where: string, text: string) => void,
  problems: ConfigProblem[],
): void {
  const places = options.filter(({ positional }) => positional);
  for (const [index, word] of words.entries()) {
    const place = places[index] ?? (places.at(-1)?.kind === "list" ? places.at(-1) : undefined);
    if (place !== undefined) give(place, place.placeholder, word);
    else problems.push({ where: word.slice(0, 100), message: "no argument is expected here" });
  }
}
