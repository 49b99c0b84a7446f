// What the system's files say about names: hosts(5) and resolv.conf(5), as far as a lookup needs them. c-ares, which Node asks DNS with,
// reads the servers by itself, and knows neither hosts nor the search list.

/** How names that are not whole are completed. */
export interface SearchRules {
  /** Domains that are tried behind a name, in this order. */
  readonly search: readonly string[];
  /** A name with as many dots is tried as it is first, and others last. */
  readonly ndots: number;
}

/** The most dots that a file can ask for. */
const maxNdots = 15;

/** Reads resolv.conf. Of `search` and `domain` lines the last one counts. */
export function parseSearchRules(text: string): SearchRules {
  let search: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [word, ...values] = line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/);
    if (word === "search") search = values;
    else if (word === "domain") search = values.slice(0, 1);
    else if (word === "options")
      for (const value of values) ndots = Number(/^ndots:(\d{1,3})$/.exec(value)?.[1] ?? ndots);
  }
  return { search: search.map((domain) => domain.replace(/\.$/, "")), ndots: Math.min(ndots, maxNdots) };
}

/** The whole names that a name may stand for, in the order in which they are asked for. */
export function wholeNames(name: string, { search, ndots }: SearchRules): readonly string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const completed = search.filter((domain) => domain !== "").map((domain) => `${name}.${domain}`);
  return name.split(".").length - 1 >= ndots ? [name, ...completed] : [...completed, name];
}

/** The addresses that a hosts file gives a name, in any case of its letters, in the file's order. */
export function hostsAddresses(text: string, name: string): readonly string[] {
  const wanted = name.replace(/\.$/, "").toLowerCase();
  const found: string[] = [];
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (names.some((each) => each.toLowerCase() === wanted)) found.push(address);
  }
  return [...new Set(found)];
}
