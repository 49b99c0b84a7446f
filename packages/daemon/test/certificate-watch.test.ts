// A pair that is replaced while it is in use.
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  addCertificateMetrics,
  type CertificateFiles,
  type CertificatePair,
  CertificateWatch,
  certificateTlsOptions,
  createMetrics,
  readCertificate,
} from "../src/index.ts";
import { PairFiles } from "./support/pair-files.ts";
import { makePair, type TestPair } from "./support/test-pair.ts";

const pair = makePair({ name: "first" });
const other = makePair({ name: "second" });
let files: PairFiles;
let watches: CertificateWatch[];
beforeEach(async () => {
  files = await PairFiles.with(pair);
  watches = [];
});
afterEach(async () => {
  for (const watch of watches) watch.close();
  await files[Symbol.asyncDispose]();
});

/** A watch that looks when it is told to, and what it told. */
async function watched(
  at: CertificateFiles = files.pair,
  use: (pair: CertificatePair) => void = () => undefined,
) {
  const changes: string[] = [];
  const problems: string[] = [];
  const watch = new CertificateWatch(at, {
    current: await readCertificate(at),
    checkMs: 3_600_000,
    onChange(next) {
      use(next);
      changes.push(next.cert.toString());
    },
    onProblem: ({ message }) => void problems.push(message),
  });
  watches.push(watch);
  const look = async (count = 1) => {
    for (let at = 0; at < count; at += 1) await watch.look();
  };
  return { watch, changes, problems, look };
}

it("the same files change nothing, nor do the same bytes written again", async () => {
  const { watch, changes, problems, look } = await watched();
  await look();
  await files.write(pair);
  await look(2);
  expect([changes, problems, watch.counts]).toEqual([[], [], { reloads: 0, failures: 0 }]);
});

it("a new pair is told once", async () => {
  const { watch, changes, look } = await watched();
  await look();
  await files.write(other);
  await look(2);
  expect(changes).toEqual([other.cert]);
  expect(watch.current.cert.toString()).toBe(other.cert);
  expect(watch.counts).toEqual({ reloads: 1, failures: 0 });
});

it("a pair that came between the reading and the first look is a change", async () => {
  const { changes, look } = await watched();
  await files.write(other);
  await look();
  expect(changes).toEqual([other.cert]);
});

it("it looks by itself, every so often, until it is closed", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const { watch } = await watched();
    const look = vi.spyOn(watch, "look");
    vi.advanceTimersByTime(2 * 3_600_000);
    expect(look).toHaveBeenCalledTimes(2);
    watch.close();
    vi.advanceTimersByTime(2 * 3_600_000);
    expect(look).toHaveBeenCalledTimes(2);
  } finally {
    vi.useRealTimers();
  }
});

it("a look that has begun tells nothing once the watch is closed", async () => {
  const good = await watched();
  const bad = await watched();
  await files.write({ key: other.key });
  await bad.look();
  const second = bad.watch.look();
  bad.watch.close();
  await second;
  await files.write(other);
  const first = good.watch.look();
  good.watch.close();
  await first;
  expect([good.changes, bad.problems]).toEqual([[], []]);
});

it("a look between the two files is no alarm, and the pair counts once both are there, each time", async () => {
  const { changes, problems, look } = await watched();
  for (const { cert, key } of [other, pair]) {
    await files.write({ cert });
    await look();
    await files.write({ key });
    await look();
  }
  expect([changes, problems]).toEqual([[other.cert, pair.cert], []]);
});

it("a broken pair leaves the old one, alarms once, and ends with a good one", async () => {
  const { watch, changes, problems, look } = await watched();
  await files.write({ key: other.key });
  await look(4);
  expect(problems).toEqual([expect.stringMatching(/does not belong to the key/)]);
  expect([changes, watch.problem, watch.current.cert.toString()]).toEqual([[], problems[0], pair.cert]);
  await rm(files.paths.keyPath);
  await look(3);
  expect([problems.length, watch.counts.failures]).toEqual([2, 2]);
  await files.write(other);
  await look();
  expect([changes, watch.problem]).toEqual([[other.cert], undefined]);
});

it("the pair in use, put back in its place, ends the alarm and is no change", async () => {
  const { watch, changes, look } = await watched();
  await files.write({ key: "nothing of a key" });
  await look(2);
  expect(watch.problem).toMatch(/tls\.key is not a PEM private key/);
  await files.write(pair);
  await look();
  expect([changes, watch.problem]).toEqual([[], undefined]);
});

it.each(["replaceByPipe", "replaceByDevice"] as const)(
  "%s in a file's place holds nothing up, and the pair that follows is used",
  async (spoil) => {
    const { watch, changes, problems, look } = await watched();
    await files[spoil](files.paths.keyPath);
    await look(3);
    expect(problems).toEqual([expect.stringMatching(/tls\.key is no plain file$/)]);
    await files.write(other);
    await look();
    expect([changes, watch.problem]).toEqual([[other.cert], undefined]);
  },
);

it.each([
  ["expired", { validToMs: Date.now() - 1_000 }, /tls\.crt expired at/],
  ["not valid yet", { validFromMs: Date.now() + 3_600_000 }, /tls\.crt is not valid before/],
])("a pair that is %s does not replace the one in use", async (_, dates, message) => {
  const { changes, problems, look } = await watched();
  await files.write(makePair(dates));
  await look(2);
  expect([changes, problems]).toEqual([[], [expect.stringMatching(message)]]);
});

it("a pair that becomes valid is used then, without another change of the files", async () => {
  const { changes, look } = await watched();
  const soonMs = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000;
  const soon = makePair({ validFromMs: soonMs });
  await files.write(soon);
  vi.useFakeTimers({ toFake: ["Date"], now: soonMs - 1 });
  try {
    await look(2);
    expect(changes).toEqual([]);
    vi.setSystemTime(soonMs);
    await look();
    expect(changes).toEqual([soon.cert]);
  } finally {
    vi.useRealTimers();
  }
});

it("a pair that its user cannot take leaves the old one, is a problem, and is tried again", async () => {
  let canUse = false;
  const { watch, changes, problems, look } = await watched(files.pair, () => {
    if (!canUse) throw new TypeError("no such context");
  });
  await files.write(other);
  await look(3);
  expect(problems).toEqual([expect.stringMatching(/tls\.crt could not be taken into use$/)]);
  expect(watch.current.cert.toString()).toBe(pair.cert);
  canUse = true;
  await look();
  expect([changes, watch.problem, watch.counts]).toEqual([
    [other.cert],
    undefined,
    { reloads: 1, failures: 1 },
  ]);
});

it("a Kubernetes projection's swap of its link is seen", async () => {
  const mount = join(files.directory, "mount");
  await mkdir(mount);
  const version = async (name: string, { cert, key }: TestPair) => {
    await mkdir(join(mount, name));
    await writeFile(join(mount, name, "tls.crt"), cert);
    await writeFile(join(mount, name, "tls.key"), key);
    await symlink(name, join(mount, "..next"));
    await rename(join(mount, "..next"), join(mount, "..data"));
  };
  await version("..2026_1", pair);
  for (const name of ["tls.crt", "tls.key"]) await symlink(join("..data", name), join(mount, name));
  const paths = { certPath: join(mount, "tls.crt"), keyPath: join(mount, "tls.key") };
  const { changes, look } = await watched(paths);
  await look();
  await version("..2026_2", other);
  await rm(join(mount, "..2026_1"), { recursive: true });
  await look();
  expect(changes).toEqual([other.cert]);
});

describe("a CA for clients", () => {
  it("counts as a change when it is another", async () => {
    await files.write({ clientCa: pair.cert });
    const { watch, changes, look } = await watched(files.paths);
    await look();
    await files.write({ clientCa: other.cert });
    await look();
    expect(changes.length).toBe(1);
    expect(watch.current.clientCa?.toString()).toBe(other.cert);
  });

  it("stays when what takes its place is none", async () => {
    await files.write({ clientCa: pair.cert });
    const { watch, changes, problems, look } = await watched(files.paths);
    await files.write({ clientCa: "none" });
    await look(2);
    expect([changes, problems]).toEqual([[], [expect.stringMatching(/ca\.crt is not a PEM certificate$/)]]);
    expect(watch.current.clientCa?.toString()).toBe(pair.cert);
  });
});

it("a listener shows new connections the new pair, and its metrics tell of it", async () => {
  const server = createServer(certificateTlsOptions(await readCertificate(files.pair)), (socket) => {
    socket.on("error", () => undefined).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, ca: [pair.cert, other.cert] });
      socket.on("error", reject).once("secureConnect", () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      });
    });
  try {
    const { watch, look } = await watched(files.pair, (next) =>
      server.setSecureContext(certificateTlsOptions(next)),
    );
    expect(await shown()).toBe("first");
    await files.write(other);
    await look();
    expect(await shown()).toBe("second");
    await files.write({ key: pair.key });
    await look(2);
    expect(await shown()).toBe("second");

    const metrics = createMetrics({ prefix: "toy_", processMetrics: false });
    addCertificateMetrics(metrics, watch);
    for (let read = 0; read < 2; read += 1)
      expect((await metrics.text()).split("\n")).toEqual(
        expect.arrayContaining([
          `toy_certificate_expiry_timestamp_seconds ${watch.current.validToMs / 1_000}`,
          "toy_certificate_reload_failing 1",
          "toy_certificate_reloads_total 1",
          "toy_certificate_reload_failures_total 1",
        ]),
      );
    await files.write(pair);
    await look();
    expect(await metrics.text()).toMatch(/^toy_certificate_reload_failing 0$/m);
    expect(await metrics.text()).toMatch(/^toy_certificate_reloads_total 2$/m);
  } finally {
    server.close();
  }
});
