// TLS of the listener. What is a pair, and when another one counts, is tried in @cellkit/daemon.
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { connect as connectPlainly } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type PeerCertificate } from "node:tls";
import { type CertificateFiles, certificateTlsOptions, createLogger } from "@cellkit/daemon";
import { openMemoryLedger } from "@cellkit/ledger";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readCertificate, watchCertificate } from "../src/certificate.ts";
import { createBackendList, createCredentialFiles, createRouter } from "../src/index.ts";
import { callBytes } from "./support/execution-request.ts";
import { hasOpenssl, makeSelfSigned } from "./support/self-signed.ts";

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
    const pair = await readCertificate(files);
    const { port } = await router.listen({ host: "127.0.0.1", port: 0, tls: certificateTlsOptions(pair) });
    const request = callBytes("GET /v1/executions/none", "client-token-of-24-letters");
    const trust = { ca: await Promise.all([first, second].map(({ certPath }) => readFile(certPath))) };
    const shown = async () => (await ask(port, request, trust)).peer.subject.CN;
    const answer = await ask(port, request, trust);
    expect(answer.text).toContain("HTTP/1.1 404 OK\r\n");
    expect(answer.text).toContain("unknown execution");
    await expect(ask(port, request, {})).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    const old = { ...trust, maxVersion: "TLSv1.2" };
    await expect(ask(port, request, old)).rejects.toThrow(/protocol version/);

    const lines: string[] = [];
    const log = createLogger({ name: "router", stream: { write: (line) => void lines.push(line) } });
    using watch = watchCertificate(files, pair, { router, log });
    await replace(second, files);
    await watch.look();
    expect(await shown()).toBe("second");
    await expect(ask(port, request, old)).rejects.toThrow(/protocol version/);
    await writeFile(files.keyPath, "nothing of a key");
    for (let look = 0; look < 2; look += 1) await watch.look();
    expect(await shown()).toBe("second");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ msg: "new certificate in use", fingerprint: watch.current.fingerprint }),
      expect.objectContaining({
        ...{ level: "error", code: "CELLKIT_ROUTER_CERTIFICATE" },
        msg: `the listener's TLS cannot be used: ${files.keyPath} is not a PEM private key without a passphrase; the pair in use stays`,
      }),
    ]);
    await replace(first, files);
    await watch.look();
    expect(await shown()).toBe("first");
  });

  it("ends a connection that shakes no hands after one wait", async () => {
    await using ledger = await openMemoryLedger();
    await using router = createRouter({
      ledger,
      backends: createBackendList({ origins: ["http://127.0.0.1:1"] }),
      tokens: { load: () => ({ client: [], backend: Buffer.of(), capability: [] }) },
      limits: { operationMs: 200 },
    });
    const tls = certificateTlsOptions(await readCertificate(makeSelfSigned(directory, "pair")));
    const { port } = await router.listen({ host: "127.0.0.1", port: 0, tls });
    const socket = connectPlainly({ port, host: "127.0.0.1" }).on("error", () => undefined);
    const closed = new Promise((resolve) => socket.resume().once("close", resolve));
    // Nothing else ends it: TLS itself has none of its own for two minutes.
    await closed;
  });

  it("is not started with files that are no pair, and tells so under its own code", async () => {
    const [pair, other] = [makeSelfSigned(directory, "pair"), makeSelfSigned(directory, "other")];
    const files = { certPath: pair.certPath, keyPath: other.keyPath };
    await expect(readCertificate(files)).rejects.toMatchObject({
      code: "CELLKIT_ROUTER_CERTIFICATE",
      path: pair.certPath,
      message: `the listener's TLS cannot be used: ${pair.certPath} does not belong to the key ${other.keyPath}`,
      cause: { code: "CELLKIT_DAEMON_CERTIFICATE" },
    });
  });
});
