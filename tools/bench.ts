// `pnpm bench [FILTER] [--json FILE]`: every benchmark whose name contains FILTER, as a table of ratios.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { type Benchmark, measure, type Result } from "./benchmark.ts";
import { packages } from "./workspace.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: "string" } } });
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
  console.error(`no benchmark has "${filter}" in its name`);
  process.exit(2);
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
