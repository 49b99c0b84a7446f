import { auditSchema, isEligible, nodeReportSchema, parseJson, RouterClient } from "@cellkit/execution";
import { describe, expect, it } from "vitest";
import { dispatcher, exampleRequest, type RunEnd, TestingOptionError, until } from "../../src/index.ts";
import { call, exchange, failureOf, read, submit } from "../support/call.ts";
import { tokenFile } from "../support/directory.ts";

describe("calls", () => {
  it("an execution is accepted as Admitting, and ends with a record that its caller believes", async () => {
    await using it = await dispatcher();
    const submitted = await submit(it.origin, "a");
    expect(submitted).toMatchObject({ status: 202, body: { requestId: "a", phase: "Admitting" } });
    const client = new RouterClient({ url: it.origin, tokenFile: await tokenFile() });
    const result = await client.prepare(JSON.stringify(exampleRequest("a"))).result();
    expect(result).toMatchObject({ phase: "Succeeded", output: "ok" });
    const audit = await call(it.origin, "GET", "/v1/executions/a/audit");
    const { events } = auditSchema.parse(
      parseJson(audit.bytes.subarray(audit.bytes.indexOf("\r\n\r\n") + 4)),
    );
    expect(events.map(({ phase }) => phase)).toEqual(["Admitting", "Succeeded"]);
    expect(it.runs).toEqual(new Map([["a", 1]]));
  });

  it("the same bytes again are a read, others a conflict, and neither runs", async () => {
    await using it = await dispatcher({ run: "hold" });
    await submit(it.origin, "a");
    expect(await submit(it.origin, "a")).toMatchObject({ status: 202, body: { requestId: "a" } });
    expect(await submit(it.origin, "a", { workload: { id: "other", caller: "c" } })).toMatchObject({
      status: 409,
      body: { error: "execution id already bound to different request bytes" },
    });
    await it.finish("a");
    await until("its end", async () => (await submit(it.origin, "a")).status === 200);
    expect(it.runs.get("a")).toBe(1);
  });

  it.each([
    ["nothing", undefined, 'what run returned is undefined; give an end, as { kind: "succeeded" }'],
    ["another kind", { kind: "success" }, 'what run returned has the kind "success"; give succeeded, failed'],
    ["an output that is no text", { kind: "succeeded", output: 7 }, "has, as output, 7; give a string"],
  ])("a run that ends with %s has failed, and the record says why", async (_what, end, problem) => {
    await using it = await dispatcher({ run: () => end as RunEnd });
    await submit(it.origin, "a");
    const record = await until("its end", async () => {
      const { body } = await read(it.origin, "a");
      return JSON.stringify(body).includes("Failed") && body;
    });
    expect(record).toMatchObject({ phase: "Failed", reason: expect.stringContaining(problem) });
  });

  it("a run, an end and a mode that are none are refused at once", async () => {
    const wrong = (run: unknown) => failureOf(dispatcher({ run: run as "hold" }));
    for (const run of ["suceed", {}, { afterMs: -1 }]) {
      expect(await wrong(run)).toBeInstanceOf(TestingOptionError);
    }
    await using it = await dispatcher({ run: "hold" });
    await submit(it.origin, "a");
    expect(await failureOf(it.finish("a", { kind: "done" } as unknown as RunEnd))).toBeInstanceOf(
      TestingOptionError,
    );
    await it.finish("a", { kind: "refused" });
  });

  it("a cancel is 202 Cancelling until the run is gone, and 200 Cancelled from then on", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await using it = await dispatcher({
      run: async () => {
        await promise;
        return { kind: "cancelled" };
      },
    });
    await submit(it.origin, "a");
    const cancel = () => call(it.origin, "POST", "/v1/executions/a/cancel");
    for (let n = 0; n < 2; n++) {
      expect(await cancel()).toMatchObject({
        status: 202,
        body: { phase: "Cancelling", reason: "cancellation requested; cleanup pending" },
      });
    }
    resolve();
    await until("the end", async () => (await cancel()).status === 200);
    expect((await cancel()).body).toMatchObject({ phase: "Cancelled", receipt: { phase: "cancelled" } });
  });

  it.each([
    ["GET", "/v1/executions/a", 404, "unknown execution"],
    ["GET", "/v1/executions/a/b", 404, "unknown execution"],
    ["GET", "/v1/executions/a/audit", 404, "unknown execution"],
    ["POST", "/v1/executions/a/cancel", 404, "unknown execution"],
    ["DELETE", "/v1/executions/a", 404, "not found"],
    ["GET", "/v1/cells", 404, "not found"],
  ])("%s %s of nothing is %i %s", async (method, path, status, error) => {
    await using it = await dispatcher();
    expect(await call(it.origin, method, path)).toMatchObject({ status, body: { error } });
  });

  it.each([
    ["no JSON", "{", 400, {}],
    ["an unknown member", JSON.stringify({ ...exampleRequest("a"), more: 1 }), 400, {}],
    [
      "a problem",
      JSON.stringify(exampleRequest(" ")),
      400,
      { error: "invalid execution request", problems: [{ code: "missing_identity", field: "id" }] },
    ],
    [
      "what the runtime does not do",
      JSON.stringify(
        exampleRequest("a", {
          tools: [1, 2].map((n) => ({ alias: `/${n}`, hash: `blake3:${"2".repeat(64)}` })),
          invocation: { alias: "/1" },
        }),
      ),
      422,
      { error: "request refused", reason: "unsupported" },
    ],
    [
      "a host that is not allowed",
      JSON.stringify(
        exampleRequest("a", {
          capabilities: { ...exampleRequest("a").capabilities, egress: ["https://evil.example:443"] },
        }),
      ),
      403,
      { error: "egress policy refused execution request" },
    ],
    ["too many bytes", "x".repeat(65_537), 413, { error: "request body exceeds 64 KiB" }],
  ])("a submission with %s is refused and does not run", async (_what, body, status, answer) => {
    await using it = await dispatcher({ node: { egressHosts: ["good.example"] } });
    expect(await call(it.origin, "POST", "/v1/executions", body)).toMatchObject({ status, body: answer });
    expect(it.runs.size).toBe(0);
  });

  it("at capacity it refuses, is not ok, and takes work again afterwards", async () => {
    await using it = await dispatcher({ run: "hold", node: { maxCells: 1 } });
    await submit(it.origin, "a");
    const refused = { status: 503, body: { error: "node at capacity", reason: "at_capacity" } };
    expect(await submit(it.origin, "b")).toMatchObject(refused);
    expect((await call(it.origin, "GET", "/v1/health")).body).toMatchObject({
      ok: false,
      kvm: true,
      node: { live_cells: 1 },
    });
    await it.finish("a");
    await until("room", async () => (await submit(it.origin, "b")).status === 202);
  });

  it("memory and egress slots are reserved for what runs, shown as what is left, and free again afterwards", async () => {
    await using it = await dispatcher({ run: "hold", node: { memoryBytes: 3_000_000, egressSlots: 1 } });
    const { capabilities } = exampleRequest("a");
    const wants = (memoryBytes: number, egress: string[] = []) => ({
      capabilities: { ...capabilities, memoryBytes, egress },
    });
    const left = async () =>
      ((await call(it.origin, "GET", "/v1/node")).body as { node: Record<string, number> }).node;
    const full = { status: 503, body: { error: "node at capacity" } };
    expect((await submit(it.origin, "a", wants(2_000_000, ["https://a.example"]))).status).toBe(202);
    expect(await left()).toMatchObject({ live_cells: 1, memory_bytes: 1_000_000, egress_slots: 0 });
    expect(await submit(it.origin, "b", wants(1_000_001))).toMatchObject(full);
    expect(await submit(it.origin, "b", wants(1, ["https://b.example"]))).toMatchObject(full);
    expect((await submit(it.origin, "b", wants(1_000_000))).status).toBe(202);
    expect(await left()).toMatchObject({ live_cells: 2, memory_bytes: 0, egress_slots: 0 });
    it.change({ memoryBytes: 1 });
    expect((await left())["memory_bytes"]).toBe(0);
    await it.finish("a");
    await until("room", async () => (await left())["egress_slots"] === 1);
  });

  it.each([
    ["hardware isolation without KVM", { kvm: false }, { reason: "unsupported" }],
    ["hardware isolation without virtualization", { cpuVirtualization: false }, { reason: "unsupported" }],
    ["a node without a guest kernel", { guestKernel: false }, { reason: "no_eligible_node" }],
    ["a node without a tool store", { toolStore: false }, { reason: "no_eligible_node" }],
  ])("%s is refused", async (_what, node, body) => {
    await using it = await dispatcher();
    it.change(node);
    expect(await submit(it.origin, "a")).toMatchObject({ status: 422, body });
  });

  it("a drained one refuses new work and tells whether all is torn down", async () => {
    await using it = await dispatcher({ run: "hold" });
    await submit(it.origin, "a");
    expect(await call(it.origin, "POST", "/v1/drain")).toMatchObject({
      status: 503,
      body: { teardownConfirmed: false },
    });
    expect(await submit(it.origin, "b")).toMatchObject({ status: 422, body: { reason: "no_eligible_node" } });
    await it.finish("a");
    await until("its teardown", async () => (await call(it.origin, "POST", "/v1/drain")).status === 200);
    expect(await call(it.origin, "POST", "/v1/drain", "x")).toMatchObject({ status: 400 });
  });

  it("capabilities are a report that its reader takes, and follow what is changed", async () => {
    await using it = await dispatcher({ node: { name: "node-a", binaryVersion: "0.5.9" } });
    const report = async () => {
      const { bytes } = await call(it.origin, "GET", "/v1/capabilities");
      return nodeReportSchema.parse(parseJson(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4)));
    };
    expect(isEligible((await report()).node)).toBe(true);
    expect(await report()).toMatchObject({ binaryVersion: "0.5.9", node: { node_name: "node-a" } });
    it.change({ moteStore: false });
    expect(isEligible((await report()).node)).toBe(false);
    it.change({ moteStore: true, guestKernel: false, binaryVersion: "0.6.1" });
    expect(await report()).toMatchObject({ binaryVersion: "0.6.1", node: { guest_kernel: false } });
    expect((await call(it.origin, "GET", "/v1/health")).body).toMatchObject({ ok: false });
    expect((await call(it.origin, "GET", "/v1/node")).body).toMatchObject({ availability_is_advisory: true });
  });
});

describe("the wire", () => {
  it.each([
    ["a scheme in other letters", "bearer backend-token-for-tests-only"],
    ["another token", "Bearer backend-token-for-tests-onlx"],
    ["nothing", ""],
  ])("%s is no credential", async (_what, authorization) => {
    await using it = await dispatcher();
    const called = await call(it.origin, "GET", "/v1/node", "", authorization);
    expect(called).toMatchObject({ status: 401, body: { error: "unauthorized" } });
  });

  it("health needs no credential", async () => {
    await using it = await dispatcher();
    expect(await exchange(it.origin, "GET /v1/health\n\n")).toSatisfy((bytes: Buffer) =>
      bytes.toString().startsWith("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "),
    );
  });

  const onePermit = "X-Celln-Execution-Permit: a\r\nX-Celln-Model-Permit: a\r\n";
  const auth = "Authorization: Bearer backend-token-for-tests-only\r\n";
  it.each([
    ["two lengths", `POST /v1/executions HTTP/1.1\r\n${auth}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`],
    ["no number as length", `POST /v1/executions HTTP/1.1\r\n${auth}Content-Length: 1x\r\n\r\nx`],
    ["two credentials", `GET /v1/node HTTP/1.1\r\n${auth}${auth}\r\n`],
    ["two permits", `GET /v1/health HTTP/1.1\r\nX-Celln-Model-Permit: a\r\nx-celln-model-permit: b\r\n\r\n`],
    ["an empty permit", "GET /v1/health HTTP/1.1\r\nX-Celln-Execution-Permit: \r\n\r\n"],
    ["65 fields", `GET /v1/health HTTP/1.1\r\n${"A: b\r\n".repeat(65)}\r\n`],
    [
      "a length beyond 64 bits",
      `POST /v1/executions HTTP/1.1\r\n${auth}Content-Length: ${2n ** 64n}\r\n\r\nx`,
    ],
    ["a line that is too long", `GET /v1/health HTTP/1.1\r\nA: ${"b".repeat(8192)}\r\n\r\n`],
  ])("%s end the connection without an answer", async (_what, bytes) => {
    await using it = await dispatcher();
    expect(await exchange(it.origin, bytes)).toHaveLength(0);
  });

  it.each([
    ["64 fields", `GET /v1/health HTTP/1.1\r\n${"A: b\r\n".repeat(64)}\r\n`, 200],
    [
      "no colon, and chunks",
      "GET /v1/health HTTP/1.1\r\nnonsense\r\nTransfer-Encoding: chunked\r\n\r\n",
      200,
    ],
    ["a line without a space", "GET\r\n\r\n", 400],
    ["an empty line", "\r\nGET /v1/health HTTP/1.1\r\n\r\n", 400],
    [
      "one permit of each kind, and any preference",
      `GET /v1/health HTTP/1.1\r\n${onePermit}Prefer: wait=1\r\n\r\n`,
      200,
    ],
    [
      "the largest length",
      `POST /v1/executions HTTP/1.1\r\n${auth}Content-Length: ${2n ** 64n - 1n}\r\n\r\n`,
      413,
    ],
    [
      "a length with many zeros",
      `GET /v1/node HTTP/1.1\r\n${auth}Content-Length: ${"0".repeat(40)}\r\n\r\n`,
      200,
    ],
  ])("%s are answered", async (_what, bytes, status) => {
    await using it = await dispatcher();
    expect((await exchange(it.origin, bytes)).toString()).toMatch(`HTTP/1.1 ${status} OK`);
  });
});
