// The links in Markdown files that point at other files of this repository.

/** Targets of `[text](target)` outside of code, without those that lead out (`https:`, `mailto:`). */
export function localLinks(markdown: string): string[] {
  const prose = markdown.replaceAll(/^```[\s\S]*?^```/gm, "").replaceAll(/`[^`\n]*`/g, "``");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of a Markdown file's headings, as GitHub makes them. */
export function anchors(markdown: string): Set<string> {
  const prose = markdown.replaceAll(/^```[\s\S]*?^```/gm, "");
  return new Set(
    [...prose.matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
