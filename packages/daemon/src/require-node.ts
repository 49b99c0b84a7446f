import { exitCodes } from "./core/exit-code.ts";
import { nodeVersionProblem } from "./core/node-version.ts";

/** Ends the process with one clear line on a Node that is too old: what would fail there names something else. */
export function requireNode(program: string): void {
  const problem = nodeVersionProblem(program, process.versions.node);
  if (problem === undefined) return;
  process.stderr.write(`${problem}\n`);
  process.exit(exitCodes.failure);
}
