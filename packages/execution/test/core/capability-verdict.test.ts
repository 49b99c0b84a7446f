import { expect, test } from "vitest";
import { capabilityVerdict } from "../../src/core/capability-verdict.ts";
import {
  capabilitiesSchema,
  isCompatible,
  isEligible,
  nodeFiguresSchema,
  nodeReportSchema,
  stringifyJson,
} from "../../src/index.ts";
import { vectors } from "../support/vectors.ts";

const answered = (status: number, body: string) =>
  capabilityVerdict({ kind: "answer", status, body: new TextEncoder().encode(body) });

test.each(vectors.apiServer.responses.filter(({ body }) => body !== undefined))(
  "vector: $name",
  ({ status, body = "", state, available }) => {
    expect(answered(status, body)).toMatchObject({ state, available });
  },
);

const verdicts = vectors.http.flatMap(({ name, expect: reply, apiServerVerdict }) =>
  apiServerVerdict === undefined || reply == null ? [] : [{ name, reply, apiServerVerdict }],
);

test("there are vectors of whole answers with a verdict", () => {
  expect(verdicts.length).toBeGreaterThanOrEqual(6);
});

test.each(verdicts)("vector: $name", ({ reply, apiServerVerdict }) => {
  expect(answered(reply.status, JSON.stringify(reply.json))).toMatchObject(apiServerVerdict);
  expect(capabilitiesSchema.parse(reply.json)).toMatchObject(exact(reply.json));
});

test.each(vectors.capabilities.nodeEligibility)("vector: node $name", ({ node, eligible }) => {
  expect(isEligible(nodeFiguresSchema.parse(node))).toBe(eligible);
});

const node = {
  kvm: true,
  cpu_virtualization: true,
  guest_kernel: true,
  mote_store: true,
  tool_store: true,
  live_cells: 0,
  max_cells: 1,
  memory_bytes: 1,
};
const contract = {
  apiVersion: "celln.dev/capabilities-v1alpha1",
  preflightOnly: true,
  artifactReadiness: "not_checked",
};
const report = { ...contract, requestVersions: ["celln.dev/v1alpha1"], node };

function withNode(change: Record<string, unknown>, others: readonly unknown[] = []): string {
  const claimed = { preflightEligible: true, report: { ...report, node: { ...node, ...change } } };
  return stringifyJson({ ...contract, eligibleNodes: 1, nodes: [claimed, ...others] });
}

test.each<[string, string, string]>([
  ["memory beyond 2^53", withNode({ memory_bytes: 2n ** 64n - 1n }), "ready"],
  ["an unknown member", withNode({ disks: 3 }), "ready"],
  ["no max_cells", withNode({ max_cells: undefined }), "incompatible"],
  ["null for memory", withNode({ memory_bytes: null }), "incompatible"],
  ["a negative live count", withNode({ live_cells: -1 }), "incompatible"],
  ["a text for a count", withNode({ live_cells: "0" }), "incompatible"],
  [
    "a node that claims nothing is not looked into",
    withNode({}, [{ report: { node: { live_cells: -5 } } }]),
    "ready",
  ],
  ["but has to have the types", withNode({}, [{ report: "none" }]), "incompatible"],
  ["a count that nobody gives, with none", stringifyJson(contract), "no_capacity"],
])("%s", (_, body, state) => {
  expect(answered(200, body).state).toBe(state);
});

test("a router's reports read into the schema, older ones with empty lists", () => {
  const older = { ...report, binaryVersion: "0.6.0", harnessContracts: [], persistentSessions: false };
  const parsed = nodeReportSchema.parse({
    ...older,
    node: { ...node, node_name: "a", egress_slots: 0 },
    later: 1,
  });
  expect(parsed).toMatchObject({
    scopedArtifactContracts: [],
    scopedHttpsContracts: [],
    node: { memory_bytes: 1n },
  });
  expect(parsed).not.toHaveProperty("later");
  expect(isCompatible(parsed)).toBe(true);
  expect(isCompatible({ ...parsed, requestVersions: ["celln.dev/v1alpha3"] })).toBe(false);
});

/** The expected value, with 64-bit integers as they are read. */
function exact(value: unknown): object {
  return JSON.parse(JSON.stringify(value), (key, member: unknown) =>
    key === "memory_bytes" ? BigInt(member as number) : member,
  );
}
