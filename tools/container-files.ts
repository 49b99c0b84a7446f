// Container files as lists of instructions: as much of the format as ours use.

/** One instruction, its name in capitals, its lines joined. */
export interface Instruction {
  name: string;
  value: string;
}

/** The stages of a container file, each starting with its FROM; what stands before the first is a stage without one. */
export function stages(text: string): Instruction[][] {
  const lines = text.replaceAll(/\\\n/g, " ").split("\n");
  const found: Instruction[][] = [[]];
  for (const line of lines) {
    const [, name = "", value = ""] = /^\s*([A-Za-z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === "") continue;
    const instruction = { name: name.toUpperCase(), value: value.trim() };
    if (instruction.name === "FROM") found.push([]);
    found.at(-1)?.push(instruction);
  }
  return found;
}
