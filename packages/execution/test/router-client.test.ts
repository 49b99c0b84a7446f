import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { executionId, RouterClient } from "../src/index.ts";
import { failureOf, quickClient, token, tokenFile } from "./support/client.ts";
import { answer, rawRouter, refusal } from "./support/raw-router.ts";
import { hash, moteRequest, succeeded } from "./support/requests.ts";

const admitted = (id: string) => answer(202, { requestId: id, phase: "Admitting" });

test("a submission is accepted, followed, and ends with its record", async () => {
  const answers = [
    admitted("run-1"),
    answer(200, { requestId: "run-1", phase: "Running" }),
    answer(200, { requestId: "run-1", phase: "SomethingNew" }),
    answer(200, succeeded("run-1")),
  ];
  await using router = await rawRouter((_, index) => answers[index] ?? refusal(404, "not found"));
  const client = await quickClient(router.url);
  const submission = await client.submit(moteRequest("run-1"));
  const record = await submission.result();
  expect(record.phase).toBe("Succeeded");
  expect(record.receipt?.output?.bytes).toBe(6n);
  expect(router.received.map(({ line }) => line)).toEqual([
    "POST /v1/executions HTTP/1.1",
    "GET /v1/executions/run-1 HTTP/1.1",
    "GET /v1/executions/run-1 HTTP/1.1",
    "GET /v1/executions/run-1 HTTP/1.1",
  ]);
});

test("each call says who it is, closes, and has its body's length", async () => {
  await using router = await rawRouter(() => admitted("run-1"));
  await (await quickClient(router.url)).submit(moteRequest("run-1"), { pin: "http://dispatcher-a:8787" });
  const [{ headers, body } = { headers: new Map(), body: "" }] = router.received;
  expect(headers.get("authorization")).toBe(`Bearer ${token}`);
  expect(headers.get("connection")).toBe("close");
  expect(headers.get("content-type")).toBe("application/json");
  expect(headers.get("content-length")).toBe(String(Buffer.byteLength(body)));
  expect(headers.get("x-celln-backend")).toBe("http://dispatcher-a:8787");
  expect(headers.has("transfer-encoding")).toBe(false);
});

test("a path prefix stays before the routes", async () => {
  await using router = await rawRouter(() => answer(200, { requestId: "run-1", phase: "Running" }));
  await (await quickClient(`${router.url}/plane/`)).get("run-1");
  expect(router.received[0]?.line).toBe("GET /plane/v1/executions/run-1 HTTP/1.1");
});

test("the token file is read for each call", async () => {
  await using router = await rawRouter(() => answer(200, { requestId: "run-1", phase: "Running" }));
  const path = await tokenFile();
  const client = await quickClient(router.url, { tokenFile: path });
  await client.get("run-1");
  await writeFile(path, "the-token-after-the-rotation");
  await client.get("run-1");
  expect(router.received.map(({ headers }) => headers.get("authorization"))).toEqual([
    `Bearer ${token}`,
    "Bearer the-token-after-the-rotation",
  ]);
});

test("without a usable token nothing is sent", async () => {
  await using router = await rawRouter(() => admitted("run-1"));
  for (const content of ["short", "\ufeffa-token-behind-a-byte-order-mark"]) {
    const client = await quickClient(router.url, { tokenFile: await tokenFile(content) });
    const error = await failureOf(client.submit(moteRequest("run-1")));
    expect(error).toMatchObject({ code: "CELLKIT_EXECUTION_TOKEN_FILE", sent: "no", next: "same-id" });
    expect(String(error)).not.toContain(content);
  }
  expect(router.connections()).toBe(0);
});

test("an audit, a cancellation and a prewarm are one call each", async () => {
  const audit = {
    apiVersion: "celln.dev/audit-v1alpha1",
    requestId: "run-1",
    caller: "tests",
    workload: "lint",
    node: "kvm-node-a",
    events: [{ sequence: 1, at: "2026-09-07T12:00:00.123456789Z", phase: "Admitting" }],
    execution: null,
    receipt: null,
    later: "ignored",
  };
  const observation = {
    apiVersion: "celln.dev/artifact-prewarm-v1",
    node: "kvm-node-a",
    processEpoch: hash("a"),
    requestHash: hash("b"),
    verification: { warm: 18_446_744_073_709 },
    warmState: "present-at-observation",
    validity: "observation-only",
    executionAuthorized: false,
    conformance: "not_checked",
    artifactReadiness: "not_checked",
  };
  await using router = await rawRouter(({ line }) => {
    if (line.includes("/audit")) return answer(200, audit);
    if (line.includes("/prewarm")) return answer(200, observation);
    return answer(202, {
      requestId: "run-1",
      phase: "Cancelling",
      reason: "cancellation requested; cleanup pending",
    });
  });
  const client = await quickClient(router.url);
  expect(await client.audit("run-1")).toMatchObject({ caller: "tests", events: [{ sequence: 1n }] });
  expect(await client.cancel("run-1")).toMatchObject({ phase: "Cancelling" });
  expect(await client.prewarm(moteRequest("run-1"), "http://dispatcher-a:8787")).toMatchObject({
    node: "kvm-node-a",
  });
  expect(
    router.received.map(({ line, headers, body }) => [line, headers.get("content-length"), body === ""]),
  ).toEqual([
    ["GET /v1/executions/run-1/audit HTTP/1.1", undefined, true],
    ["POST /v1/executions/run-1/cancel HTTP/1.1", "0", true],
    ["POST /v1/artifacts/prewarm HTTP/1.1", expect.any(String), false],
  ]);
});

test("the bytes that are sent are those that were frozen, and stay so", async () => {
  await using router = await rawRouter(() => admitted("run-1"));
  const client = await quickClient(router.url);
  const request = moteRequest("run-1");
  const submission = client.prepare(request);
  const kept = submission.bytes;
  request.workload.caller = "changed after it was prepared";
  submission.bytes.fill(0);
  await submission.send();
  const again = client.prepare(kept);
  expect(again.id).toBe("run-1");
  await again.send();
  expect(router.received.map(({ body }) => body)).toEqual([
    Buffer.from(kept).toString(),
    Buffer.from(kept).toString(),
  ]);
});

test.each<[string, boolean | undefined, "bytes" | "object", string]>([
  ["a new request", undefined, "object", "no"],
  ["a request that was sent before a restart", true, "object", "maybe"],
  ["kept bytes", undefined, "bytes", "maybe"],
  ["bytes that nobody has sent", false, "bytes", "no"],
])("%s is told as sent: %s as %s is %s", async (_, resumed, form, sent) => {
  await using router = await rawRouter(() =>
    refusal(503, "ownership capacity exhausted; operator reconciliation required"),
  );
  const client = await quickClient(router.url);
  const request = moteRequest("run-1");
  const source = form === "bytes" ? client.prepare(request).bytes : request;
  expect(await failureOf(client.prepare(source, { resumed }).send())).toMatchObject({ sent });
  expect(await failureOf(client.submit(source, { resumed }))).toMatchObject({ sent });
});

test("integers beyond 2^53 are sent and read with all their digits", async () => {
  const memoryBytes = 18_446_744_073_709_551_615n;
  await using router = await rawRouter(() => admitted("run-1"));
  const client = await quickClient(router.url);
  const { capabilities } = moteRequest("run-1");
  await client.submit(moteRequest("run-1", { capabilities: { ...capabilities, memoryBytes } }));
  expect(router.received[0]?.body).toContain('"memoryBytes":18446744073709551615');
});

test("allowInsecure is left out when it is false, since older dispatchers refuse the name", async () => {
  const client = await quickClient("http://127.0.0.1:9");
  const { capabilities } = moteRequest("run-1");
  const text = (allowInsecure: boolean) =>
    Buffer.from(
      client.prepare(moteRequest("r", { capabilities: { ...capabilities, allowInsecure } })).bytes,
    ).toString();
  expect(text(false)).not.toContain("allowInsecure");
  expect(text(true)).toContain('"allowInsecure":true');
});

test.each([
  ["http://router.example", 'is "http://router.example": http to another machine'],
  ["ftp://router", "is no http or https URL"],
  ["https://user@router", "is no http or https URL"],
  ["https://router/?", "is no http or https URL"],
  ["https://router/#x", "is no http or https URL"],
  ["router:8787", "is no http or https URL"],
])("a client for %s is refused", (url, problem) => {
  expect(() => new RouterClient({ url, tokenFile: "/t" })).toThrow(problem);
});

test("an error names the value that was given, and no credential in it", async () => {
  const make = (url: string) => () => new RouterClient({ url, tokenFile: "/t" });
  expect(make("router:8787")).toThrow('url is "router:8787", which is no http');
  expect(make("https://me:secret@router/?token=hidden#hidden")).toThrow(/url is "…@router\/\?…"/);
  expect(make("https://router/#secret")).toThrow(/^(?!.*secret)/);
  const client = await quickClient("http://127.0.0.1:9");
  expect(() => client.attach("")).toThrow('the execution id "" is none that a router takes (1 to 512');
  expect(() => client.attach("a/b")).toThrow('"a/b"');
  expect(() => client.attach("é".repeat(600))).toThrow(/"é{80}"… \(600 characters\)/);
  expect(() => client.prepare(moteRequest("r"), { pin: "http://a b" })).toThrow('pin is "http://a b"; give');
  expect(() => executionId("a", "", "c")).toThrow("an empty part, number 2 of 3");
  const limits = { pollMinMs: 9, pollMaxMs: 3 };
  expect(() => new RouterClient({ url: "http://localhost", tokenFile: "/t", ...limits })).toThrow(
    "9, more than pollMaxMs (3)",
  );
});

test.each<[unknown, string]>([
  [-1, "capabilities.timeoutMs: is less than 0"],
  [2n ** 64n, "capabilities.timeoutMs: is more than 18446744073709551615"],
  [1.5, "capabilities.timeoutMs: is no whole number"],
  ["1", "capabilities.timeoutMs: is no whole number"],
])("a time of %s is told in words of numbers, as they are written", async (timeoutMs, problem) => {
  const client = await quickClient("http://127.0.0.1:9");
  const { capabilities } = moteRequest("r");
  const request = moteRequest("r", { capabilities: { ...capabilities, timeoutMs: timeoutMs as number } });
  expect(() => client.prepare(request)).toThrow(problem);
});

test("http to another machine needs to be allowed", () => {
  const options = { url: "http://router.example", tokenFile: "/t", allowInsecureHttp: true };
  expect(new RouterClient(options)).toBeInstanceOf(RouterClient);
});
