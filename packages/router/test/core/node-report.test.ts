import { isEligible } from "@cellkit/execution/contract";
import { describe, expect, it } from "vitest";
import { closingHead, encodeCall, framingOf } from "../../src/core/backend-call.ts";
import { capabilitiesOf } from "../../src/core/capabilities.ts";
import { parseHealth, parseReport } from "../../src/core/node-report.ts";
import { vectors } from "../support/vectors.ts";

const node = {
  node_name: "a",
  kvm: true,
  cpu_virtualization: true,
  guest_kernel: true,
  mote_store: true,
  tool_store: true,
  live_cells: 0,
  max_cells: 4,
  memory_bytes: 1,
  egress_slots: 0,
};
const report = {
  apiVersion: "celln.dev/capabilities-v1alpha1",
  binaryVersion: "0.6.0",
  preflightOnly: true,
  node,
  requestVersions: ["celln.dev/v1alpha1"],
  harnessContracts: [],
  persistentSessions: false,
  artifactReadiness: "not_checked",
};
const reportOf = (change: object) => parseReport(JSON.stringify({ ...report, ...change }));

describe("a report", () => {
  it("loses what is not known, and gets the two lists that older dispatchers lack", () => {
    expect(reportOf({ extra: 1, node: { ...node, extra: 1 } })).toEqual({
      ...report,
      node: { ...node, memory_bytes: 1n },
      scopedArtifactContracts: [],
      scopedHttpsContracts: [],
    });
  });

  it.each([
    ["another version", { apiVersion: "celln.dev/capabilities-v9" }],
    ["no preflight", { preflightOnly: false }],
    ["no v1alpha1", { requestVersions: ["celln.dev/v1alpha2"] }],
    ["checked artifacts", { artifactReadiness: "ready" }],
    ["no name", { node: { ...node, node_name: undefined } }],
    ["a fraction of a sandbox", { node: { ...node, live_cells: 0.5 } }],
    ["a negative count", { node: { ...node, max_cells: -1 } }],
    ["a count above 32 bits", { node: { ...node, max_cells: 2 ** 32 } }],
    ["null for a list", { scopedHttpsContracts: null }],
  ])("with %s cannot be relied on", (_name, change) => {
    expect(reportOf(change)).toBeUndefined();
  });

  it("may have a member twice: the last one counts", () => {
    const twice = JSON.stringify(report).replace("{", '{"binaryVersion":"0","extra":1,"extra":2,');
    expect(parseReport(twice)?.binaryVersion).toBe("0.6.0");
  });

  it("that is no JSON is none", () => {
    expect(parseReport("<html>")).toBeUndefined();
  });

  it("with memory above 64 bits is none", () => {
    const memory = (digits: string) =>
      parseReport(JSON.stringify(report).replace('"memory_bytes":1', `"memory_bytes":${digits}`));
    expect(memory("18446744073709551615")?.node.memory_bytes).toBe(18446744073709551615n);
    expect(memory("18446744073709551616")).toBeUndefined();
    expect(memory("1e3")).toBeUndefined();
  });
});

it.each(vectors.capabilities.nodeEligibility.map((vector) => [vector.name, vector] as const))(
  "eligible: %s",
  (_name, vector) => {
    const parsed = reportOf({ node: vector.node });
    expect(parsed && isEligible(parsed.node)).toBe(vector.eligible);
  },
);

it("the answer about all nodes keeps every digit, and tells nothing of those that are lost", () => {
  const big = parseReport(
    JSON.stringify(report).replace('"memory_bytes":1', '"memory_bytes":18446744073709551615'),
  );
  const full = reportOf({ node: { ...node, live_cells: 4 } });
  if (big === undefined || full === undefined) return expect.unreachable();
  const { answer, nodeCount, eligibleCount } = capabilitiesOf([
    { report: big },
    "lost",
    "failed",
    { report: full },
  ]);
  expect([nodeCount, eligibleCount, answer.status]).toEqual([4, 1, 200]);
  expect(answer.body).toContain('"memory_bytes":18446744073709551615,');
  expect(JSON.parse(answer.body)).toMatchObject({
    eligibleNodes: 1,
    parentRouting: false,
    nodes: [
      { index: 0, preflightEligible: true },
      { index: 1, preflightEligible: false, reason: "unreachable_unauthorized_or_incompatible" },
      { preflightEligible: false, reason: "probe_failed" },
      { index: 3, preflightEligible: false, report: { node: { live_cells: 4 } } },
    ],
  });
});

describe("health", () => {
  it.each([
    ["ok and kvm", 200, { ok: true, kvm: true, more: 1 }, true],
    ["another status", 503, { ok: true, kvm: true }, false],
    ["no KVM", 200, { ok: true, kvm: false }, false],
    ["not ok", 200, { ok: false, kvm: true }, false],
    ["a truthy word", 200, { ok: "true", kvm: true }, false],
    ["no object", 200, null, false],
  ])("with %s", (_name, status, body, healthy) => {
    expect(parseHealth(status, JSON.stringify(body)).healthy).toBe(healthy);
  });

  it("brings the node's figures where they are whole", () => {
    expect(parseHealth(200, JSON.stringify({ ok: true, kvm: true, node })).node?.max_cells).toBe(4);
    expect(parseHealth(200, JSON.stringify({ ok: true, kvm: true, node: {} })).node).toBeUndefined();
    expect(parseHealth(200, "{").healthy).toBe(false);
  });
});

describe("a call on the wire", () => {
  const token = Buffer.from("secret");
  it("has names with capitals, the token, and its exact body", () => {
    const sent = encodeCall(
      { method: "POST", path: "/v1/executions", host: "http://n:1", body: Buffer.from("{é}") },
      token,
    );
    expect(Buffer.from(sent).toString()).toBe(
      "POST /v1/executions HTTP/1.1\r\nHost: http://n:1\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nContent-Length: 4\r\nConnection: close\r\n\r\n{é}",
    );
  });

  it("that reads has no length", () => {
    const sent = encodeCall({ method: "GET", path: "/v1/health", host: "http://n" }, token);
    expect(Buffer.from(sent).toString()).toBe(
      "GET /v1/health HTTP/1.1\r\nHost: http://n\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n",
    );
  });

  it("may leave the connection open", () => {
    const call = { method: "GET", path: "/v1/health", host: "http://n", keepAlive: true } as const;
    expect(Buffer.from(encodeCall(call, token)).toString()).toMatch(/\r\nConnection: keep-alive\r\n\r\n$/);
  });

  it.each([
    ["HTTP/1.1 200 OK\r\nContent-Length: 2", true],
    ["HTTP/1.1 200 OK\r\ncontent-length:2\r\nConnection: Keep-Alive", true],
    ["HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2", true],
    ["HTTP/1.1 200 OK", false],
    ["HTTP/1.0 200 OK\r\nContent-Length: 2", false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close", false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2", false],
    ["HTTP/1.1 200 OK\r\nContent-Length: +2", false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked", false],
    ["", false],
  ])("has an answer with the head %j that ends by itself: %s", (head, keeps) => {
    expect(framingOf(head)).toEqual({ bytes: keeps ? head.length + 4 + 2 : undefined, keeps });
  });

  it("tells callers that their connection closes", () => {
    expect(
      closingHead("HTTP/1.1 200 OK\r\nA: b\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nC: d"),
    ).toBe("HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\nConnection: close");
  });
});
