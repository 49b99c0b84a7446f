import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type CertificateFiles, dateProblem, readCertificate } from "../src/certificate.ts";
import { CertificateWatch } from "../src/certificate-watch.ts";
import { CertificateError } from "../src/errors.ts";
import { TestCa, type TestPair } from "./support/certificates.ts";

const ca = new TestCa();
const pair = ca.issue();
const other = ca.issue();
let root: string;
let files: CertificateFiles;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "edge-certificate-"));
});
afterAll(() => rm(root, { recursive: true }));
beforeEach(async () => {
  const directory = await mkdtemp(join(root, "pair-"));
  files = { certPath: join(directory, "tls.crt"), keyPath: join(directory, "tls.key") };
  await write(pair);
});

/** Replaces both files as careful programs do, one after the other. */
async function write({ cert, key }: Partial<TestPair>): Promise<void> {
  for (const [path, text] of [
    [files.certPath, cert],
    [files.keyPath, key],
  ] as const) {
    if (text === undefined) continue;
    await writeFile(`${path}.next`, text);
    await rename(`${path}.next`, path);
  }
}

describe("reading a pair", () => {
  it("tells its dates and fingerprint", async () => {
    const validToMs = Math.floor(Date.now() / 1_000) * 1_000 + 60_000;
    await write(ca.issue({ validToMs }));
    const read = await readCertificate(files);
    expect(read).toMatchObject({
      validToMs,
      fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/),
      clientCa: undefined,
    });
    expect(dateProblem(read, Date.now())).toBeUndefined();
    expect(dateProblem(read, validToMs)).toMatch(/^expired at /);
    expect(dateProblem(read, read.validFromMs - 1)).toMatch(/^is not valid before /);
  });

  it.each<[string, () => Promise<void>, RegExp]>([
    ["an absent certificate", () => rm(files.certPath), /tls\.crt cannot be read \(ENOENT\)$/],
    ["an absent key", () => rm(files.keyPath), /tls\.key cannot be read \(ENOENT\)$/],
    ["a certificate that is none", () => write({ cert: "hello" }), /tls\.crt is not a PEM certificate$/],
    ["a key that is none", () => write({ key: "secret-text" }), /tls\.key is not a PEM private key/],
    [
      "a certificate and the key of another",
      () => write({ key: other.key }),
      /tls\.crt does not belong to the key .*tls\.key$/,
    ],
    ["a huge file", () => write({ cert: "a".repeat(1_048_577) }), /tls\.crt is longer than 1048576 bytes$/],
    [
      "a FIFO as certificate",
      async () => {
        await rm(files.certPath);
        execFileSync("mkfifo", [files.certPath]);
      },
      /tls\.crt is no plain file$/,
    ],
    [
      "a device without end as key",
      async () => {
        await rm(files.keyPath);
        await symlink("/dev/zero", files.keyPath);
      },
      /tls\.key is no plain file$/,
    ],
    ["a key for a certificate", () => write({ cert: pair.key }), /tls\.crt is not a PEM certificate$/],
  ])("%s is told by its path, never by its content", async (_, spoil, message) => {
    await spoil();
    const error = await readCertificate(files).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CertificateError);
    expect((error as CertificateError).message).toMatch(message);
    expect((error as CertificateError).message).toMatch(/^operator TLS certificate\/key unavailable: \//);
    expect((error as CertificateError).message).not.toMatch(/secret-text|BEGIN/);
  });

  it("a CA for clients that is none is told by its own path", async () => {
    const clientCaPath = join(root, "ca.pem");
    await writeFile(clientCaPath, "x");
    await expect(readCertificate({ ...files, clientCaPath })).rejects.toThrow(
      `${clientCaPath} is not a PEM certificate`,
    );
  });
});

describe("watching a pair", () => {
  async function watched(over: Partial<CertificateFiles> = {}) {
    files = { ...files, ...over };
    const changes: string[] = [];
    const problems: string[] = [];
    const watch = new CertificateWatch(files, {
      current: await readCertificate(files),
      checkMs: 3_600_000,
      onChange: ({ cert }) => void changes.push(cert.toString()),
      onProblem: ({ message }) => void problems.push(message),
    });
    await watch.look();
    return { watch, changes, problems };
  }

  it("the same files change nothing, nor do the same bytes written again", async () => {
    const { watch, changes, problems } = await watched();
    await write(pair);
    await watch.look();
    expect([changes, problems]).toEqual([[], []]);
    watch.close();
  });

  it("a new pair is told once", async () => {
    const { watch, changes } = await watched();
    await write(other);
    await watch.look();
    await watch.look();
    expect(changes).toEqual([other.cert]);
    expect(watch.current.cert.toString()).toBe(other.cert);
    watch.close();
  });

  it("a look between the two files is no alarm, and the pair counts once both are there", async () => {
    const { watch, changes, problems } = await watched();
    await write({ cert: other.cert });
    await watch.look();
    await write({ key: other.key });
    await watch.look();
    expect([changes, problems]).toEqual([[other.cert], []]);
    watch.close();
  });

  it("a broken pair leaves the old one, alarms once, and ends with a good one", async () => {
    const { watch, changes, problems } = await watched();
    await write({ key: other.key });
    for (let look = 0; look < 4; look += 1) await watch.look();
    expect(problems).toEqual([expect.stringMatching(/does not belong to the key/)]);
    expect([changes, watch.problem, watch.current.cert.toString()]).toEqual([[], problems[0], pair.cert]);
    await rm(files.keyPath);
    for (let look = 0; look < 3; look += 1) await watch.look();
    expect(problems.length).toBe(2);
    await write(other);
    await watch.look();
    expect([changes, watch.problem]).toEqual([[other.cert], undefined]);
    watch.close();
  });

  it("a FIFO in a file's place holds nothing up, and the pair that follows is used", async () => {
    const { watch, changes, problems } = await watched();
    await rm(files.keyPath);
    execFileSync("mkfifo", [files.keyPath]);
    for (let look = 0; look < 3; look += 1) await watch.look();
    expect(problems).toEqual([expect.stringMatching(/tls\.key is no plain file$/)]);
    await write(other);
    await watch.look();
    expect([changes, watch.problem]).toEqual([[other.cert], undefined]);
    watch.close();
  });

  it.each([
    ["expired", { validToMs: Date.now() - 1_000 }, /expired at/],
    ["not valid yet", { validFromMs: Date.now() + 60_000 }, /is not valid before/],
  ])("a pair that is %s does not replace one that is good", async (_, dates, message) => {
    const { watch, changes, problems } = await watched();
    await write(ca.issue(dates));
    await watch.look();
    await watch.look();
    expect([changes, problems]).toEqual([[], [expect.stringMatching(message)]]);
    watch.close();
  });

  it("a pair that becomes valid is used then, without another change of the files", async () => {
    const { watch, changes } = await watched();
    const soon = ca.issue({ validFromMs: Math.ceil(Date.now() / 1_000) * 1_000 + 1_000 });
    await write(soon);
    await watch.look();
    expect(changes).toEqual([]);
    const deadlineMs = Date.now() + 5_000;
    while (changes.length === 0 && Date.now() < deadlineMs) {
      await watch.look();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(changes).toEqual([soon.cert]);
    watch.close();
  });

  it("a Kubernetes projection's swap of its link is seen", async () => {
    const mount = await mkdtemp(join(root, "mount-"));
    const version = async (name: string, { cert, key }: TestPair) => {
      await mkdir(join(mount, name));
      await writeFile(join(mount, name, "tls.crt"), cert);
      await writeFile(join(mount, name, "tls.key"), key);
      await symlink(name, join(mount, "..next"));
      await rename(join(mount, "..next"), join(mount, "..data"));
    };
    await version("..2026_1", pair);
    for (const name of ["tls.crt", "tls.key"]) await symlink(join("..data", name), join(mount, name));
    const { watch, changes } = await watched({
      certPath: join(mount, "tls.crt"),
      keyPath: join(mount, "tls.key"),
    });
    await version("..2026_2", other);
    await rm(join(mount, "..2026_1"), { recursive: true });
    await watch.look();
    expect(changes).toEqual([other.cert]);
    watch.close();
  });

  it("another CA for clients counts as a change", async () => {
    const clientCaPath = join(root, `ca-${Math.floor(performance.now() * 1_000)}.pem`);
    await writeFile(clientCaPath, ca.cert);
    const { watch, changes } = await watched({ clientCaPath });
    const next = new TestCa();
    await writeFile(clientCaPath, next.cert);
    await watch.look();
    expect(changes.length).toBe(1);
    expect(watch.current.clientCa?.toString()).toBe(next.cert);
    watch.close();
  });
});
