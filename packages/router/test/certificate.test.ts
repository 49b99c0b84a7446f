// TLS of the listener: the pair in use, its renewal, and what is no pair.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { utimesSync } from "node:fs";
import { copyFile, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { connect as connectPlainly } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type PeerCertificate, type TlsOptions } from "node:tls";
import { openMemoryLedger } from "@cellkit/ledger";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CertificateFiles, readCertificate, watchCertificate } from "../src/certificate.ts";
import type { CertificateError } from "../src/errors.ts";
import { createBackendList, createCredentialFiles, createRouter } from "../src/index.ts";
import { callBytes } from "./support/execution-request.ts";
import { hasOpenssl, makeSelfSigned } from "./support/self-signed.ts";
import { until } from "./support/until.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-tls-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** What a client sees that asks over TLS. */
function ask(
  port: number,
  request: Buffer,
  options: object,
): Promise<{ text: string; peer: PeerCertificate }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", ...options }, () => socket.write(request));
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
    const peer = () => socket.getPeerCertificate();
    let seen: PeerCertificate;
    socket.on("secureConnect", () => (seen = peer()));
    socket.on("error", reject);
    socket.on("end", () => resolve({ text, peer: seen }));
  });
}

async function replace(from: CertificateFiles, to: CertificateFiles): Promise<void> {
  for (const key of ["certPath", "keyPath"] as const) {
    await copyFile(from[key], `${to[key]}.next`);
    await rename(`${to[key]}.next`, to[key]);
  }
}

async function replaceByPipe(path: string): Promise<void> {
  await rm(path);
  execFileSync("mkfifo", [path]);
}

describe.runIf(hasOpenssl())("a router that speaks TLS", () => {
  it("serves with the pair in its files, TLS 1.3 alone, and with a new pair once both files are replaced", async () => {
    const files = { certPath: join(directory, "tls.crt"), keyPath: join(directory, "tls.key") };
    const [first, second] = [makeSelfSigned(directory, "first"), makeSelfSigned(directory, "second")];
    await replace(first, files);
    for (const role of ["client", "backend"])
      await writeFile(join(directory, role), `${role}-token-of-24-letters`);
    await using ledger = await openMemoryLedger();
    await using router = createRouter({
      ledger,
      backends: createBackendList({ origins: ["http://127.0.0.1:1"] }),
      tokens: createCredentialFiles({
        client: join(directory, "client"),
        backend: join(directory, "backend"),
      }),
    });
    const { port } = await router.listen({ host: "127.0.0.1", port: 0, tls: await readCertificate(files) });
    const request = callBytes("GET /v1/executions/none", "client-token-of-24-letters");
    const trust = { ca: await Promise.all([first, second].map(({ certPath }) => readFile(certPath))) };
    const answer = await ask(port, request, trust);
    expect(answer.text).toContain("HTTP/1.1 404 OK\r\n");
    expect(answer.text).toContain("unknown execution");
    await expect(ask(port, request, {})).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    await expect(ask(port, request, { ...trust, maxVersion: "TLSv1.2" })).rejects.toThrow(/protocol version/);

    const problems: CertificateError[] = [];
    const watch = watchCertificate(files, {
      onChange: (tls: TlsOptions) => router.renewTls(tls),
      onProblem: (error) => problems.push(error),
      intervalMs: 20,
    });
    await until("the second certificate", async () => {
      // Written a second time in case the watch had not begun.
      await replace(second, files);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return (await ask(port, request, trust)).peer.subject.CN === "second";
    });
    await writeFile(files.keyPath, "nothing of a key");
    await until("a problem", () => problems.length > 0);
    expect((await ask(port, request, trust)).peer.subject.CN).toBe("second");
    expect(problems.map(({ message }) => message).join()).not.toContain("nothing of a key");
    await replaceByPipe(files.certPath);
    await until("a second problem", () => problems.at(-1)?.message.includes("is no regular file"));
    await replace(first, files);
    await until(
      "the first certificate",
      async () => (await ask(port, request, trust)).peer.subject.CN === "first",
    );
    watch.close();
  });

  it.each([
    ["after one wait", { operationMs: 200 }, false],
    ["when it stops", {}, true],
  ])("ends a connection that shakes no hands %s", async (_when, limits, stops) => {
    await using ledger = await openMemoryLedger();
    await using router = createRouter({
      ledger,
      backends: createBackendList({ origins: ["http://127.0.0.1:1"] }),
      tokens: { load: () => ({ client: [], backend: Buffer.of(), capability: [] }) },
      limits,
    });
    const tls = await readCertificate(makeSelfSigned(directory, "pair"));
    const { port } = await router.listen({ host: "127.0.0.1", port: 0, tls });
    const socket = connectPlainly({ port, host: "127.0.0.1" }).on("error", () => undefined);
    const closed = new Promise((resolve) => socket.resume().once("close", resolve));
    await once(socket, "connect");
    // Another connection behind it is there, so this one is.
    await expect(ask(port, Buffer.of(), {})).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    const startedMs = performance.now();
    if (stops) await router.stop();
    await closed;
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  it("takes a change of its files once they are still, once, and none after the end of its watch", async () => {
    const files = makeSelfSigned(directory, "pair");
    const heard: string[] = [];
    const listeners = { onChange: () => heard.push("change"), onProblem: () => heard.push("problem") };
    const watch = watchCertificate(files, { ...listeners, intervalMs: 40 });
    let touches = 0;
    const touch = () => {
      touches += 1;
      utimesSync(files.certPath, touches, touches);
    };
    // Between any two looks the files change.
    const touching = setInterval(touch, 5);
    const startedMs = performance.now();
    await until("five looks", () => performance.now() - startedMs > 240);
    clearInterval(touching);
    expect(heard).toEqual([]);
    touch();
    await until("the change", () => heard.length > 0);
    await writeFile(`${files.keyPath}.next`, "nothing of a key");
    await rename(`${files.keyPath}.next`, files.keyPath);
    await until("the problem", () => heard.length > 1);
    touch();
    await until("it again", () => heard.length > 2);
    watch.close();
    // By another watch, which hears of two changes, it is known that this one had its time.
    let otherHeard = 0;
    let touchedMs = 0;
    const other = watchCertificate(files, { ...listeners, onProblem: () => otherHeard++, intervalMs: 40 });
    await until("another watch", () => {
      if (performance.now() - touchedMs > 150) {
        touch();
        touchedMs = performance.now();
      }
      return otherHeard > 1;
    });
    other.close();
    expect(heard).toEqual(["change", "problem", "problem"]);
  });

  it.each([
    [
      "a certificate that is missing",
      async (files: CertificateFiles) => rm(files.certPath),
      /cannot be read \(ENOENT\)/,
    ],
    [
      "a key that is no PEM",
      async (files: CertificateFiles) => writeFile(files.keyPath, "x"),
      /is no certificate in PEM/,
    ],
    [
      "a key of another certificate",
      async (files: CertificateFiles) =>
        replace({ ...makeSelfSigned(directory, "other"), certPath: files.certPath }, files),
      /is no certificate in PEM that belongs to the key/,
    ],
    [
      "a pipe that nobody writes to",
      async (files: CertificateFiles) => replaceByPipe(files.certPath),
      /is no regular file/,
    ],
    [
      "a device without an end",
      async (files: CertificateFiles) => {
        await rm(files.keyPath);
        await symlink("/dev/zero", files.keyPath);
      },
      /is no regular file/,
    ],
    [
      "a file of more than 1 MiB",
      async (files: CertificateFiles) => writeFile(files.certPath, "x".repeat(1_048_577)),
      /is longer than 1048576 bytes/,
    ],
  ])("is not started with %s", async (_, spoil, expected) => {
    const files = makeSelfSigned(directory, "pair");
    await spoil(files);
    await expect(readCertificate(files)).rejects.toThrow(expected);
    await expect(readCertificate(files)).rejects.toMatchObject({ code: "CELLKIT_ROUTER_CERTIFICATE" });
  });
});
