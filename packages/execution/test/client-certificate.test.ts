// Behind an edge that serves only clients with a certificate: real TLS servers, and what each refusal is told as.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TlsOptions } from "node:tls";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import {
  CapabilityClient,
  type CapabilityClientOptions,
  capabilityOptionsFromEnvironment,
} from "../src/index.ts";
import { type Authority, createAuthority, hasOpenssl } from "./support/certificates.ts";
import { failureOf, patient, quickClient, testDirectory, tokenFile } from "./support/client.ts";
import { inOneTry } from "./support/in-one-try.ts";
import { answer, type RawRouter, rawRouter } from "./support/raw-router.ts";
import { moteRequest } from "./support/requests.ts";

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** What happens between the first look at a pair and the second; once. */
const meanwhile = vi.hoisted(() => ({ happens: undefined as (() => Promise<void>) | undefined }));
vi.mock("node:timers/promises", async (load) => {
  const real = await load<typeof import("node:timers/promises")>();
  return {
    ...real,
    async setTimeout(...given: Parameters<typeof real.setTimeout>) {
      const { happens } = meanwhile;
      meanwhile.happens = undefined;
      await happens?.();
      return real.setTimeout(...given);
    },
  };
});

const attempts = inject("size") === "long" ? 200 : 5;

const running = () => answer(200, { requestId: "run-1", phase: "Running" });

/** A pair as files, which a test may replace. */
async function pairFiles(pair: Pair) {
  const directory = await testDirectory();
  const files = { clientCertFile: join(directory, "tls.crt"), clientKeyFile: join(directory, "tls.key") };
  const write = async (part: "cert" | "key", text: string) => {
    const path = part === "cert" ? files.clientCertFile : files.clientKeyFile;
    await writeFile(`${path}.next`, text);
    await rename(`${path}.next`, path);
  };
  await write("cert", pair.cert);
  await write("key", pair.key);
  return { files, write };
}

describe.runIf(await hasOpenssl())("a client certificate", () => {
  let directory: string;
  let servers: Authority;
  let clients: Authority;
  let [server, own, other, strange] = [] as unknown as [Pair, Pair, Pair, Pair];
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "cellkit-execution-"));
    const authority = async (name: string) =>
      createAuthority(await mkdir(join(directory, name), { recursive: true }));
    servers = await authority("servers");
    clients = await authority("clients");
    server = await servers.issue("IP:127.0.0.1");
    own = await clients.issue("DNS:controller");
    other = await clients.issue("DNS:controller");
    strange = await (await authority("strangers")).issue("DNS:controller");
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** An edge that serves only clients of the authority. */
  async function guarded(options: TlsOptions = {}): Promise<RawRouter> {
    const asks = { ca: clients.ca, requestCert: true, rejectUnauthorized: true, ...options };
    return rawRouter(running, { ...server, ...asks });
  }

  async function prober(url: string, options: Partial<CapabilityClientOptions> = {}) {
    return new CapabilityClient({ url, tokenFile: await tokenFile(), ca: servers.ca, ...options });
  }

  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "is shown to an edge that asks for one, in %s",
    async (maxVersion) => {
      await using edge = await guarded({ maxVersion });
      const { files } = await pairFiles(own);
      const client = await quickClient(edge.url, { ca: servers.ca, ...files });
      await client.submit(moteRequest("run-1"));
      expect(await (await prober(edge.url, files)).probe()).toMatchObject({ state: "incompatible" });
      expect(edge.received).toHaveLength(2);
    },
  );

  test("is not asked for by most routers, and harms nobody", async () => {
    await using router = await rawRouter(running, server);
    const { files } = await pairFiles(own);
    expect(await (await quickClient(router.url, { ca: servers.ca, ...files })).get("run-1")).toMatchObject({
      phase: "Running",
    });
  });

  test.runIf(inject("size") === "long")(
    "is taken, after a while, by an edge that gives no session ticket",
    async () => {
      await writeFile(join(directory, "ca"), clients.ca);
      await writeFile(join(directory, "server"), `${server.cert}${server.key}`);
      const where = [
        "-accept",
        "127.0.0.1:0",
        "-cert",
        join(directory, "server"),
        "-CAfile",
        join(directory, "ca"),
      ];
      const edge = spawn("openssl", ["s_server", ...where, "-Verify", "1", "-num_tickets", "0", "-www"]);
      onTestFinished(() => void edge.kill("SIGKILL"));
      let said = "";
      edge.stdout.on("data", (chunk: Buffer) => (said += chunk));
      await expect.poll(() => said, patient).toMatch(/ACCEPT \S+:\d+/);
      const { files } = await pairFiles(own);
      const url = `https://127.0.0.1:${/:(\d+)/.exec(said)?.[1]}`;
      const client = await quickClient(url, { ca: servers.ca, ...files });
      const startMs = performance.now();
      // It answered: with a page of its own.
      expect(await failureOf(client.get("run-1"))).toMatchObject({
        code: "CELLKIT_EXECUTION_ANSWER_UNUSABLE",
      });
      expect(performance.now() - startMs).toBeGreaterThan(990);
    },
  );

  // Several each: an alert that a reset overtook, or a request that left too early, would show as a loss.
  test.each<[string, () => Pair | undefined]>([
    ["none", () => undefined],
    ["one of an authority that the edge does not know", () => strange],
  ])("%s: the refusal is told as one, and nothing was sent", async (_, make) => {
    await using edge = await guarded();
    const pair = make();
    const files = pair === undefined ? {} : (await pairFiles(pair)).files;
    const client = await quickClient(edge.url, { ca: servers.ca, ...files });
    for (let at = 0; at < attempts; at += 1) {
      expect(await failureOf(inOneTry((time) => client.submit(moteRequest("run-1"), time)))).toMatchObject({
        sent: "no",
        cause: {
          code: "CELLKIT_EXECUTION_CLIENT_REFUSED",
          sent: "no",
          next: "same-id",
          message: expect.stringContaining(
            pair === undefined
              ? "give clientCertFile and clientKeyFile"
              : "did not take the client certificate",
          ),
        },
      });
    }
    expect(await (await prober(edge.url, files)).probe()).toMatchObject({
      state: "unreachable",
      cause: expect.stringMatching(/_ALERT_|^CELLKIT_EXECUTION_CLIENT_REFUSED$/),
    });
    expect(edge.received).toEqual([]);
  });

  test("is read for each call", async () => {
    await using edge = await guarded();
    const { files, write } = await pairFiles(strange);
    const client = await quickClient(edge.url, { ca: servers.ca, ...files });
    expect(await failureOf(client.get("run-1"))).toMatchObject({ code: "CELLKIT_EXECUTION_CLIENT_REFUSED" });
    await write("cert", own.cert);
    await write("key", own.key);
    expect(await client.get("run-1")).toMatchObject({ phase: "Running" });
  });

  test("and its key may be replaced one after the other while calls are made", async () => {
    await using edge = await guarded();
    const { files, write } = await pairFiles(own);
    const client = await quickClient(edge.url, { ca: servers.ca, ...files });
    await write("cert", other.cert);
    meanwhile.happens = () => write("key", other.key);
    expect(await client.get("run-1")).toMatchObject({ phase: "Running" });
    expect(meanwhile.happens).toBeUndefined();
  });

  test.each<[string, "cert" | "key", () => string, RegExp]>([
    ["a certificate's file without one", "cert", () => "nothing", /tls\.crt has no PEM certificate/],
    [
      "a certificate that is broken",
      "cert",
      () => own.cert.replace("MII", "AAA"),
      /tls\.crt has a PEM block that is no/,
    ],
    [
      "a key's file without one",
      "key",
      () => own.cert,
      /tls\.key has no PEM private key without a passphrase/,
    ],
    [
      "a key's file that is too long",
      "key",
      () => "k".repeat(1_048_577),
      /tls\.key is longer than 1048576 bytes/,
    ],
    [
      "the key of another certificate",
      "key",
      () => other.key,
      /tls\.key has the key of another certificate than the first in \S+tls\.crt/,
    ],
  ])("%s is told, and no connection is made", async (_, part, text, message) => {
    await using edge = await guarded();
    const { files, write } = await pairFiles(own);
    await write(part, text());
    const client = await quickClient(edge.url, { ca: servers.ca, ...files });
    const error = await failureOf(client.submit(moteRequest("run-1")));
    expect(error).toMatchObject({
      code: "CELLKIT_EXECUTION_CLIENT_CERTIFICATE",
      sent: "no",
      next: "same-id",
      message: expect.stringMatching(message),
    });
    // Nothing of a key is in a message or its causes.
    const secret = own.key.split("\n")[1] ?? "";
    expect(JSON.stringify([String(error), (error as Error).cause])).not.toContain(secret);
    expect(await (await prober(edge.url, files)).probe()).toMatchObject({
      state: "unreachable",
      cause: "CELLKIT_EXECUTION_CLIENT_CERTIFICATE",
    });
    expect(edge.connections()).toBe(0);
  });

  test("that cannot be opened is told with the file", async () => {
    const { files } = await pairFiles(own);
    for (const missing of ["clientCertFile", "clientKeyFile"] as const) {
      const client = await quickClient("https://127.0.0.1:1", {
        ...files,
        [missing]: `${files[missing]}.none`,
      });
      expect(await failureOf(client.get("run-1"))).toMatchObject({
        code: "CELLKIT_EXECUTION_CLIENT_CERTIFICATE",
        message: expect.stringContaining(`${files[missing]}.none cannot be opened (ENOENT)`),
      });
    }
  });
});

test.each(["clientCertFile", "clientKeyFile"] as const)("%s alone is refused at once", async (name) => {
  const lacking = name === "clientKeyFile" ? "clientCertFile" : "clientKeyFile";
  const refused = { code: "CELLKIT_EXECUTION_OPTION", option: lacking };
  expect(await failureOf(quickClient("https://router", { [name]: "/x" }))).toMatchObject(refused);
  expect(() => new CapabilityClient({ url: "https://router", tokenFile: "/t", [name]: "/x" })).toThrow(
    `${lacking} is missing beside ${name}`,
  );
});

test("the environment names both files; one without the other is a state", async () => {
  const env = {
    CELLN_ENABLED: "true",
    CELLN_ROUTER_URL: "https://127.0.0.1:1",
    CELLN_CAPABILITY_TOKEN_FILE: await tokenFile(),
    CELLN_CLIENT_CERT_FILE: "/run/client/tls.crt",
  };
  expect(
    capabilityOptionsFromEnvironment({ ...env, CELLN_CLIENT_KEY_FILE: "/run/client/tls.key" }),
  ).toMatchObject({ clientCertFile: "/run/client/tls.crt", clientKeyFile: "/run/client/tls.key" });
  expect(capabilityOptionsFromEnvironment({ CELLN_CLIENT_CERT_FILE: "" })).not.toHaveProperty(
    "clientCertFile",
  );
  expect(await new CapabilityClient(capabilityOptionsFromEnvironment(env)).probe()).toMatchObject({
    state: "unreachable",
    cause: "CELLKIT_EXECUTION_CLIENT_CERTIFICATE",
  });
});
