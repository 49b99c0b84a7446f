// The code in READMEs that claims to run: fences tagged `ts runnable`.

/** One block: its code and the line of the file on which the code begins. */
export interface RunnableBlock {
  line: number;
  code: string;
}

/** All blocks of a Markdown text whose fence is tagged `ts runnable`, in order. */
export function runnableBlocks(markdown: string): RunnableBlock[] {
  const blocks: RunnableBlock[] = [];
  let open: { line: number; code: string[] } | undefined;
  for (const [index, text] of markdown.split("\n").entries()) {
    if (open === undefined) {
      if (text.trim() === "```ts runnable") open = { line: index + 2, code: [] };
    } else if (text.trim() === "```") {
      blocks.push({ line: open.line, code: `${open.code.join("\n")}\n` });
      open = undefined;
    } else {
      open.code.push(text);
    }
  }
  return blocks;
}
