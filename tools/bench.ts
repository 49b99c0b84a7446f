// `npm run bench -- [FILTER] [--json FILE]`: every benchmark whose name contains FILTER, as a table of ratios.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { type Benchmark, measure, type Result } from "./benchmark.ts";
import { packages } from "./workspace.ts";

const help = `Usage: npm run bench -- [FILTER] [--json FILE]

Measures every benchmark whose name contains FILTER (all of them without one) beside a peer or the physical
floor, and prints a table of ratios: the median of the paired rounds, and their quartiles.

  --json FILE  write the figures to FILE too
  --list       print the names, and what each measures, without measuring
  --help       print this
`;

/** What the command line asks for; a word that it does not know ends the process with 2. */
function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "string" },
        list: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    console.error(`bench: ${(error as Error).message}\n\n${help}`);
    return process.exit(2);
  }
}

const { values, positionals } = readArguments();
if (values.help) {
  process.stdout.write(help);
  process.exit(0);
}
const filter = positionals[0] ?? "";

const benchmarks: Benchmark[] = [];
for (const { path } of packages()) {
  const folder = join(path, "bench");
  if (!existsSync(folder)) continue;
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith(".bench.ts"))
    .sort()) {
    const module = (await import(pathToFileURL(join(folder, file)).href)) as {
      benchmarks?: readonly Benchmark[];
    };
    if (module.benchmarks === undefined) throw new TypeError(`${join(folder, file)} exports no "benchmarks"`);
    benchmarks.push(...module.benchmarks.filter(({ name }) => name.includes(filter)));
  }
}
if (benchmarks.length === 0) {
  console.error(`no benchmark has "${filter}" in its name; --list names all of them`);
  process.exit(2);
}
if (values.list) {
  for (const { name, subject, against, unit } of benchmarks) {
    console.log(`${name.padEnd(34)} ${subject}  beside  ${against}, in ${unit}`);
  }
  process.exit(0);
}

console.log(
  `${benchmarks.length} benchmarks, Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? "?"}\n`,
);
const runs: Result[] = [];
for (const benchmark of benchmarks) {
  const result = await measure(benchmark, (round) => {
    if (process.stderr.isTTY)
      process.stderr.write(`\r${benchmark.name}: round ${round + 1} of ${benchmark.roundCount} `);
  });
  if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");
  runs.push(result);
  const figures = `${result.subjectFigure.toPrecision(4)} against ${result.againstFigure.toPrecision(4)} ${result.unit}`;
  console.log(
    `${result.name.padEnd(34)} ${result.ratio.toFixed(3)}  [${result.low.toFixed(3)} .. ${result.high.toFixed(3)}]  ${figures}`,
  );
  console.log(
    `  ${result.subject}  beside  ${result.against}; ${result.rounds} rounds; ${result.conditions}`,
  );
}
if (values.json !== undefined) {
  const file = resolve(values.json);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ runs }, null, 2)}\n`);
  console.log(`\nwritten: ${values.json}`);
}
