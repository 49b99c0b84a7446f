// What a process writes of itself when it is asked to, or dies: Node's diagnostic reports, its output and its figures have no bearer
// and nothing of a key, though both are in use at that moment.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { TestCa } from "./support/certificates.ts";
import { bearer, requestBytes } from "./support/edge.ts";
import { EdgeProcess } from "./support/edge-process.ts";
import { okAnswer, RawBackend } from "./support/raw-backend.ts";
import { TlsClient } from "./support/tls-client.ts";

/** Loaded before the daemon, to break it on SIGWINCH. The daemon's own handler would log an error that nobody caught, and end. */
const breaks = {
  uncaught: `process.removeAllListeners("uncaughtException"); throw new TypeError("broken by a test")`,
  "out of memory": `const kept = []; for (;;) kept.push(new Array(100_000).fill(kept.length))`,
};

/** Ways to die, and what their reports say of themselves. */
const deaths: readonly (readonly [keyof typeof breaks, string])[] = [
  ["uncaught", "Exception"],
  ...(inject("size") === "long" ? ([["out of memory", "OOMError"]] as const) : []),
];

function nodeOptions(directory: string, death: keyof typeof breaks): string {
  const module = `process.on("SIGWINCH", () => { ${breaks[death]} });`;
  return [
    `--import=data:text/javascript,${encodeURIComponent(module)}`,
    "--report-on-signal --report-uncaught-exception --report-on-fatalerror",
    `--report-directory=${directory}`,
    "--max-old-space-size=100",
  ].join(" ");
}

/** A report is written in parts, and any of them may end with a brace. */
function isWhole(report: string): boolean {
  try {
    JSON.parse(report);
    return true;
  } catch {
    return false;
  }
}

/** The reports so far, once there are as many as expected and each is whole. */
function reports(directory: string, count: number): Promise<string[]> {
  return until(`${count} reports`, async () => {
    const names = (await readdir(directory)).filter((name) => name.startsWith("report."));
    const texts = await Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
    return texts.length === count && texts.every(isWhole) && texts;
  });
}

it.each(deaths)(
  "no bearer and nothing of a key is in a report, in the output or in the metrics: %s",
  async (death, trigger) => {
    await using backend = await RawBackend.open(({ line }, socket) => {
      if (!line.includes("swallowed")) socket.write(okAnswer);
    });
    await using edge = await EdgeProcess.prepare();
    const { directory, files } = edge;
    const clientCa = new TestCa("clients");
    await writeFile(join(directory, "clients.crt"), clientCa.cert);
    const args = [
      "--execution-router",
      "--listen",
      "127.0.0.1:0",
      "--client-ca",
      join(directory, "clients.crt"),
    ];
    const env = { NODE_OPTIONS: nodeOptions(directory, death) };
    const daemon = edge.run(backend.origin.origin, args, env);
    const { port, internal } = await edge.ready();
    const pair = clientCa.issue();
    using client = await TlsClient.dial(port, { ca: edge.ca.cert, ...pair });
    const authorization = `Authorization: Bearer ${bearer}`;
    client.send(requestBytes("GET /v1/capabilities", [authorization]));
    client.send(requestBytes("GET /v1/no-route", [authorization]));
    expect((await client.answers(2)).map(({ status }) => status)).toEqual([200, 404]);
    const keys = [await readFile(files.key, "utf8"), pair.key];

    // One request is at the backend while the process writes of itself, and while it dies.
    client.send(requestBytes("GET /v1/executions/swallowed", [authorization]));
    await until("the request at the backend", () => backend.requests.length === 2);
    daemon.signal("SIGUSR2");
    const [asked = ""] = await reports(directory, 1);
    const metrics = await (await fetch(`http://${internal}/metrics`)).text();
    daemon.signal("SIGWINCH");
    await daemon.exited;
    const died = (await reports(directory, 2)).find((text) => text !== asked) ?? "";

    // They are reports of this process, whole, with what they are made for.
    expect(JSON.parse(asked).header).toMatchObject({ trigger: "Signal", event: "SIGUSR2" });
    expect(JSON.parse(died).header.trigger).toBe(trigger);
    for (const report of [asked, died]) expect(report).toContain(files.key);
    expect(edge.lines.join("\n")).toContain("Writing Node.js report to file");
    const everything = [...edge.lines, client.text, metrics, asked, died].join("\n");
    const secrets = keys.flatMap((key) => key.split("\n").filter((line) => /^[\w+/=]{16,}$/.test(line)));
    expect(secrets.length).toBeGreaterThan(3);
    for (const secret of [bearer, ...secrets]) expect(everything).not.toContain(secret);
  },
);
