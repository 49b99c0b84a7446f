// TLS with what stands before a router: what waiting does not mend is told before anything is tried.
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { accessProblem, checkAccessFiles, type RouterAccess } from "../src/router-access.ts";
import { checkTls, probeRouter } from "../src/router-probe.ts";
import { TemporaryDirectory } from "./support/project.ts";
import { hasOpenssl, makeSelfSigned } from "./support/self-signed.ts";

it.each([
  [{}, undefined],
  [{ clientCert: "c", clientKey: "k" }, undefined],
  [{ clientCert: "c" }, "clientKey"],
  [{ clientKey: "k" }, "clientCert"],
])("%j lacks %s", (options, path) => expect(accessProblem(options)?.path).toBe(path));

describe.skipIf(!hasOpenssl())("a router behind TLS", () => {
  let directory: TemporaryDirectory;
  let server: Server;
  let url: string;
  let access: RouterAccess;
  const path = (name: string) => join(directory.path, name);
  beforeEach(async () => {
    directory = await TemporaryDirectory.make();
    const own = makeSelfSigned(directory.path, "server");
    const client = makeSelfSigned(directory.path, "client");
    access = { caFile: own.certFile, clientCertFile: client.certFile, clientKeyFile: client.keyFile };
    server = createServer({
      cert: await readFile(own.certFile),
      key: await readFile(own.keyFile),
      ca: await readFile(client.certFile),
      requestCert: true,
      rejectUnauthorized: true,
    });
    server.on("request", (_request, response) => response.writeHead(401, { connection: "close" }).end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve));
    await directory.remove();
  });

  it("is reached with its CA and the certificate that it asks for", async () => {
    await checkAccessFiles(access);
    await checkTls(url, access);
    expect(await probeRouter(url, "token", access)).toEqual({ kind: "refused" });
  });

  it("is told as one that is not trusted, or that asks for a certificate", async () => {
    const told = (reason: RegExp) => ({
      code: "CELLKIT_CLI_ROUTER_ACCESS",
      exitCode: 2,
      message: expect.stringMatching(reason),
    });
    await expect(checkTls(url, { ...access, caFile: undefined })).rejects.toMatchObject(
      told(/SELF_SIGNED_CERT\): give by --ca-file the CA/),
    );
    await expect(checkTls(url, { caFile: access.caFile })).rejects.toMatchObject(
      told(/CERTIFICATE_REQUIRED\).*--client-cert/),
    );
  });

  it("is none of that where nobody listens, or nothing is TLS", async () => {
    await checkTls("https://127.0.0.1:1", access);
    await checkTls("http://127.0.0.1:1", {});
  });

  it("has files that are told when they cannot be read", async () => {
    for (const key of ["caFile", "clientCertFile", "clientKeyFile"])
      await expect(checkAccessFiles({ ...access, [key]: path("none") })).rejects.toMatchObject({
        exitCode: 2,
        message: `${path("none")} cannot be read (ENOENT)`,
      });
  });
});
