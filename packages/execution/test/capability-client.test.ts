import dns from "node:dns";
import { writeFile } from "node:fs/promises";
import { expect, type MockInstance, onTestFinished, test, vi } from "vitest";
import { CapabilityClient, capabilityOptionsFromEnvironment, unknownCapability } from "../src/index.ts";
import { failureOf, nobody, patient, testDirectory, tokenFile } from "./support/client.ts";
import { answer, rawRouter } from "./support/raw-router.ts";
import { vectors } from "./support/vectors.ts";

const discovery = vectors.tokens.capability;
const ready = vectors.http.find(({ apiServerVerdict }) => apiServerVerdict?.state === "ready")?.expect?.json;

async function clientFor(url: string, options: { timeoutMs?: number; tokenFile?: string } = {}) {
  const file = options.tokenFile ?? (await tokenFile(discovery));
  return new CapabilityClient({ url, allowInsecureHttp: true, ...options, tokenFile: file });
}

test.each(vectors.apiServer.configuration)("vector: $name", async ({ env, state }) => {
  const verdict = await new CapabilityClient(() => capabilityOptionsFromEnvironment(env)).probe();
  expect(verdict).toMatchObject({ state, available: false });
});

test.each(vectors.apiServer.responses)(
  "vector over TCP: $name",
  async ({ status, body, bodyRepeat, state, available }) => {
    const text = body ?? bodyRepeat?.char.repeat(bodyRepeat.count) ?? "";
    await using router = await rawRouter(() => answer(status, text));
    expect(await (await clientFor(router.url)).probe()).toMatchObject({ state, available });
    expect(router.received).toHaveLength(1);
  },
);

test("a probe is one GET with the discovery token, below the URL's path", async () => {
  await using router = await rawRouter(() => answer(200, ready));
  const verdict = await (await clientFor(`${router.url}/plane/`)).probe();
  expect(verdict).toMatchObject({ state: "ready", available: true, eligibleNodes: 2, parentRouting: false });
  expect(router.received[0]?.line).toBe("GET /plane/v1/capabilities HTTP/1.1");
  expect(router.received[0]?.headers.get("authorization")).toBe(`Bearer ${discovery}`);
});

test("the environment is read for each probe", async () => {
  await using router = await rawRouter(() => answer(200, ready));
  const env: Record<string, string> = {
    CELLN_ROUTER_URL: router.url,
    CELLN_CAPABILITY_TOKEN_FILE: await tokenFile(discovery),
  };
  const client = new CapabilityClient(() => capabilityOptionsFromEnvironment(env));
  expect(await client.probe()).toMatchObject({ state: "disabled" });
  env["CELLN_ENABLED"] = "true";
  expect(await client.probe()).toMatchObject({ state: "transport_invalid" });
  env["CELLN_ALLOW_INSECURE_HTTP"] = "true";
  expect(await client.probe()).toMatchObject({ state: "ready" });
});

test("the token file is read for each probe, and a bad one is a state", async () => {
  await using router = await rawRouter(() => answer(200, ready));
  const path = `${await testDirectory()}/token`;
  const client = await clientFor(router.url, { tokenFile: path });
  expect(await client.probe()).toMatchObject({
    state: "credential_invalid",
    reason: "Celln read-only credential unavailable",
  });
  for (const { fileBase64, valid, token } of vectors.tokenFiles) {
    await writeFile(path, Buffer.from(fileBase64, "base64"));
    const before = router.received.length;
    const { state, reason } = await client.probe();
    if (valid) expect(router.received.at(-1)?.headers.get("authorization")).toBe(`Bearer ${token}`);
    else expect(reason).toBe("Celln read-only credential invalid");
    expect(state).toBe(valid ? "ready" : "credential_invalid");
    expect(router.received.length - before).toBe(valid ? 1 : 0);
  }
});

test("a redirect is not followed", async () => {
  await using other = await rawRouter(() => answer(200, ready));
  const head = `HTTP/1.1 302 Found\r\nLocation: ${other.url}/v1/capabilities\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
  await using router = await rawRouter(() => head);
  expect(await (await clientFor(router.url)).probe()).toMatchObject({
    state: "unreachable",
    reason: "Celln authenticated capability probe refused or unavailable",
  });
  expect(other.connections()).toBe(0);
});

const failed = "Celln authenticated capability probe failed (router unreachable or TLS/configuration error)";
const oversized = "Celln capability response invalid or oversized";
test.each<[string, string | undefined, string, string]>([
  ["never answers", undefined, "unreachable", failed],
  ["hangs up", "", "unreachable", failed],
  ["is cut off in a 200", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "incompatible", oversized],
  [
    "is cut off in a 500",
    "HTTP/1.1 500 OK\r\nContent-Length: 9\r\n\r\n{",
    "unreachable",
    "Celln authenticated capability probe refused or unavailable",
  ],
  [
    "is cut off in a 404",
    "HTTP/1.1 404 OK\r\nContent-Length: 9\r\n\r\n{",
    "not_installed",
    "Celln one-shot capabilities endpoint was not found on the configured router",
  ],
])("a router that %s", async (_, bytes, state, reason) => {
  await using router = await rawRouter(() => bytes);
  // Only what never comes is waited for in vain.
  const timeoutMs = bytes === undefined ? 200 : 5_000;
  expect(await (await clientFor(router.url, { timeoutMs })).probe()).toMatchObject({ state, reason });
});

test("what lies under a failure has a code", async () => {
  const cause = async (url: string, options = {}) =>
    (await (await clientFor(url, options)).probe()) as object;
  await using silent = await rawRouter(() => undefined);
  await using router = await rawRouter(() => answer(404, ""));
  expect(await cause(nobody)).toMatchObject({
    state: "unreachable",
    reason: failed,
    cause: "ECONNREFUSED",
  });
  // Not by the machine's own DNS, which may take longer than a probe to say so.
  const lookup = vi.spyOn(dns, "lookup") as unknown as MockInstance<
    (host: string, options: object, done: (error: Error) => void) => void
  >;
  onTestFinished(() => lookup.mockRestore());
  lookup.mockImplementation((_host, _options, done) =>
    setImmediate(done, Object.assign(new TypeError("no such name"), { code: "ENOTFOUND" })),
  );
  expect(await cause("http://router.invalid")).toMatchObject({ cause: "ENOTFOUND" });
  expect(lookup).toHaveBeenCalledTimes(1);
  expect(await cause(silent.url, { timeoutMs: 100 })).toMatchObject({ reason: failed, cause: "ETIMEDOUT" });
  expect(await cause(router.url, { tokenFile: "/nowhere/token" })).toMatchObject({
    state: "credential_invalid",
    cause: "ENOENT",
  });
  expect(await cause(router.url, { caFile: "/nowhere/ca" })).toMatchObject({
    state: "unreachable",
    cause: "ENOENT",
  });
  expect(await cause(router.url, { caFile: import.meta.filename })).toMatchObject({
    cause: "CELLKIT_EXECUTION_CA_FILE",
  });
  for (const path of ["/v1/capabilities", "/plane/v1/"]) {
    expect(await cause(`${router.url}${path}`)).toMatchObject({
      state: "not_installed",
      cause: "URL_HAS_ROUTE",
    });
  }
  expect(await cause(`${router.url}/plane`)).not.toHaveProperty("cause");
});

test("nobody listens", async () => {
  expect(await (await clientFor(nobody)).probe()).toMatchObject({ state: "unreachable", reason: failed });
});

test("five seconds are the most, also for a body that comes byte by byte", async () => {
  await using router = await rawRouter((_, __, socket) => {
    const drip = setInterval(() => socket.write(" "), 20);
    socket.on("close", () => clearInterval(drip)).write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    return undefined;
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const verdict = (await clientFor(router.url, { timeoutMs: 5_000 })).probe();
    await expect.poll(() => router.received.length, { ...patient, interval: 0 }).toBe(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await verdict).toMatchObject({ state: "incompatible", reason: oversized });
  } finally {
    vi.useRealTimers();
  }
});

test("a body of exactly 2 MiB is read, and one byte more is too much", async () => {
  const text = JSON.stringify(ready).padEnd(2 * 1024 * 1024);
  await using router = await rawRouter((_, index) => answer(200, index === 0 ? text : `${text} `));
  const client = await clientFor(router.url);
  expect(await client.probe()).toMatchObject({ state: "ready" });
  expect(await client.probe()).toMatchObject({ state: "incompatible", reason: oversized });
});

test("a caller that gives up gets its own reason", async () => {
  await using router = await rawRouter(() => undefined);
  const controller = new AbortController();
  const verdict = (await clientFor(router.url)).probe({ signal: controller.signal });
  await expect.poll(() => router.received.length, patient).toBe(1);
  controller.abort(new TypeError("no more"));
  expect(await failureOf(verdict)).toEqual(new TypeError("no more"));
});

test("before a probe nothing is known", () => {
  expect(unknownCapability).toEqual({ state: "unknown", available: false, reason: "not confirmed" });
});

test("options that cannot be used are errors at once", () => {
  const options = { url: "https://router", tokenFile: "/t" };
  expect(() => new CapabilityClient({ ...options, timeoutMs: 0 })).toThrow("timeoutMs");
  expect(() => new CapabilityClient({ ...options, timeoutMs: 6_000 })).toThrow("a probe takes at most 5000");
  expect(() => new CapabilityClient({ ...options, ca: "x" })).toThrow("ca has no PEM certificate");
  expect(() => new CapabilityClient({ ...options, ca: "x", caFile: "/c" })).toThrow("exclude each other");
});
