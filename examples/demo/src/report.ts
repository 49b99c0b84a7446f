// The run as one HTML page without anything from elsewhere: the figures, and a timeline of nodes, calls and pauses.
import { writeFile } from "node:fs/promises";
import type { CallRecord, NodeRecord, Summary, Tally } from "./tally.ts";

const width = 1_000;
const bucketMs = 250;

/** Writes the report of one run. @param broken the promises that did not hold, a sentence each */
export async function writeReport(
  file: string,
  run: { summary: Summary; tally: Tally; broken: readonly string[]; startMs: number; endMs: number },
): Promise<void> {
  await writeFile(file, page(run));
}

function page({ summary, tally, broken, startMs, endMs }: Parameters<typeof writeReport>[1]): string {
  const x = (ms: number) => Math.round(((ms - startMs) / (endMs - startMs)) * width * 10) / 10;
  const names = [...new Set(tally.nodes.map(({ node }) => node))].sort();
  const rows = names.map((name, row) => nodeRow(name, 20 + row * 28, tally.nodes, x, endMs)).join("\n");
  const top = 30 + names.length * 28;
  const verdict = broken.length === 0 ? "Every promise held." : `Broken: ${broken.join("; ")}.`;
  const figures = Object.entries(summary)
    .map(
      ([name, value]) =>
        `<tr><th>${name}</th><td>${asHtml(typeof value === "object" ? JSON.stringify(value) : String(value))}</td></tr>`,
    )
    .join("\n");
  const slowest = tally.calls.toSorted((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs)).slice(0, 30);
  const errors = callRows(tally.calls.filter(({ outcome }) => outcome !== "ok").slice(0, 200), startMs);
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>cellkit demo</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1060px; padding: 0 1rem; color: #1d2433; }
h1 { font-size: 1.4rem; } svg { width: 100%; height: auto; background: #f6f7f9; border-radius: 6px; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; }
.verdict { font-weight: 600; color: ${broken.length === 0 ? "#18794e" : "#c2261c"}; } text { font: 12px system-ui, sans-serif; }
</style>
<h1>A fleet drains, restarts and loses a node, and its clients go on</h1>
<p class="verdict">${asHtml(verdict)}</p>
<svg viewBox="-90 0 ${width + 110} ${top + 150}" role="img" aria-label="timeline">
${rows}
${callBars(tally.calls, top, x, startMs, endMs)}
${seconds(startMs, endMs, top + 130, x)}
</svg>
<p>Green: serving. Amber: draining or restarting. Red: killed. Below: answered calls per ${bucketMs} ms (blue), and the
longest wait of a call that ended there (red line, full height 3 s).</p>
<h2>Figures</h2><table>${figures}</table>
<h2>The slowest calls</h2><table>${callRows(slowest, startMs)}</table>
<h2>Calls without a good answer</h2>${errors === "" ? "<p>None.</p>" : `<table>${errors}</table>`}
</html>
`;
}

function callRows(calls: readonly CallRecord[], startMs: number): string {
  return calls
    .map(({ cell, kind, outcome, retries, error, startMs: at, endMs: end }) => {
      const cells = [
        `${((at - startMs) / 1000).toFixed(2)} s`,
        cell,
        kind,
        `${outcome} after ${Math.round(end - at)} ms and ${retries} retries`,
        error ?? "",
      ];
      return `<tr>${cells.map((text) => `<td>${asHtml(text)}</td>`).join("")}</tr>`;
    })
    .join("\n");
}

function nodeRow(
  name: string,
  y: number,
  records: readonly NodeRecord[],
  x: (ms: number) => number,
  endMs: number,
): string {
  const mine = records.filter(({ node }) => node === name);
  const colours: Record<NodeRecord["what"], string> = {
    drain: "#e8a33d",
    drained: "#f2c66d",
    kill: "#d64545",
    killed: "#d64545",
    ready: "#4caf7d",
  };
  const bar = (from: number, to: number, colour: string, title: string) =>
    `<rect x="${from}" y="${y - 12}" width="${Math.max(1, to - from)}" height="18" fill="${colour}"><title>${asHtml(title)}</title></rect>`;
  const first = mine[0];
  const bars = [bar(0, first === undefined ? width : x(first.atMs), colours.ready, `${name} serves`)];
  for (const [index, record] of mine.entries()) {
    const next = mine[index + 1];
    const cells = record.cells === undefined ? "" : `, at most ${record.cells} cells`;
    bars.push(
      bar(
        x(record.atMs),
        next === undefined ? x(endMs) : x(next.atMs),
        colours[record.what],
        `${name}: ${record.what}${cells}`,
      ),
    );
  }
  return `<text x="-80" y="${y + 2}">${asHtml(name)}</text>${bars.join("")}`;
}

function callBars(
  calls: readonly CallRecord[],
  top: number,
  x: (ms: number) => number,
  startMs: number,
  endMs: number,
): string {
  const slots = Array.from({ length: Math.ceil((endMs - startMs) / bucketMs) }, () => ({
    count: 0,
    waitMs: 0,
  }));
  for (const { endMs: at, startMs: from } of calls) {
    const slot = slots[Math.floor((at - startMs) / bucketMs)];
    if (slot === undefined) continue;
    slot.count += 1;
    slot.waitMs = Math.max(slot.waitMs, at - from);
  }
  const most = Math.max(1, ...slots.map(({ count }) => count));
  const slotWidth = x(startMs + bucketMs);
  const bars = slots.map(({ count }, index) => {
    const height = Math.round((count / most) * 100);
    return `<rect x="${(index * slotWidth).toFixed(1)}" y="${top + 110 - height}" width="${Math.max(0.5, slotWidth - 0.5).toFixed(1)}" height="${height}" fill="#7aa7e8"/>`;
  });
  const line = slots.map(
    ({ waitMs }, index) =>
      `${(index * slotWidth).toFixed(1)},${(top + 110 - Math.min(100, waitMs / 30)).toFixed(1)}`,
  );
  return `${bars.join("")}<polyline points="${line.join(" ")}" fill="none" stroke="#d64545" stroke-width="1.5"/>`;
}

function seconds(startMs: number, endMs: number, y: number, x: (ms: number) => number): string {
  const stepSeconds = Math.max(1, Math.round((endMs - startMs) / 10_000));
  const marks: string[] = [];
  for (let second = 0; second * 1000 <= endMs - startMs; second += stepSeconds) {
    marks.push(`<text x="${x(startMs + second * 1000)}" y="${y}">${second} s</text>`);
  }
  return marks.join("");
}

function asHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
