import type { OtherVariable } from "@cellkit/daemon";

/** The README's table of variables that are no option here. */
export function environmentTable(variables: Readonly<Record<string, OtherVariable>>): string {
  const effects = { none: "without effect", refused: "refused" } as const;
  const rows = Object.entries(variables).map(
    ([name, { effect, reason }]) => `| \`${name}\` | ${effects[effect]} | ${reason} |`,
  );
  return ["| variable | here | why |", "|---|---|---|", ...rows].join("\n");
}
