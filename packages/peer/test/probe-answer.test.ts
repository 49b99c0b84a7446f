import { describe, expect, it } from "vitest";
import type { PeerVersion } from "../src/core/constants.ts";
import { verifyProbe } from "../src/core/probe.ts";
import { signRequest } from "../src/core/sign.ts";
import { RequestVerifier } from "../src/core/verifier.ts";
import { faultOfProof, probePath } from "../src/peer-probe.ts";
import { answerProbe, type ProbeReply } from "../src/probe-answer.ts";
import { createProbeKey } from "../src/probe-key.ts";
import { fleetKey, otherKey } from "./support/fake-node.ts";

const nowMs = Date.parse("2026-11-30T12:00:00Z");
const probeKey = createProbeKey();
const identity = { node: "node-a", advertise: "10.0.0.1:8081", privateKey: probeKey.privateKey };
const challenge = "ab".repeat(32);
let nonces = 0;

interface Asked {
  version?: PeerVersion;
  method?: string;
  headers?: Array<[string, string]>;
  key?: typeof fleetKey;
  destination?: string;
  timeMs?: number;
  body?: Uint8Array;
}

function ask(given: Asked = {}): ProbeReply {
  const { version = 5, method = "GET", headers = [["X-Cells-Probe-Challenge", challenge]] } = given;
  nonces += 1;
  const signed = signRequest({
    key: given.key ?? fleetKey,
    version,
    method,
    target: probePath[version],
    body: given.body,
    source: "diagnostic",
    destination: given.destination ?? "node-a",
    timeMs: given.timeMs ?? nowMs,
    nonce: nonces.toString(16).padStart(32, "0"),
  });
  const verifier = new RequestVerifier({ keys: [fleetKey], version, self: "node-a" });
  return answerProbe(
    { method, target: probePath[version], headers: [...Object.entries(signed), ...headers] },
    { verifier, version, identity, nowMs },
  );
}

it.each([2, 5] as const)(
  "a signed probe of protocol %s is answered with a proof that the record's key verifies",
  (version) => {
    const { status, headers, body } = ask({ version });
    expect(status).toBe(200);
    expect(headers["x-cells-peer-version"]).toBe(String(version));
    const answer = JSON.parse(body);
    expect(answer).toEqual({
      version: 1,
      node: "node-a",
      advertise: "10.0.0.1:8081",
      challenge,
      signature: expect.any(String),
    });
    expect(verifyProbe({ ...answer, publicKeyHex: probeKey.publicKeyHex })).toBe(true);
  },
);

describe("refused", () => {
  it.each<[string, Asked, number, string]>([
    ["another key", { key: otherKey }, 401, "peer authentication failed"],
    ["a clock 31 s off", { timeMs: nowMs - 31_000 }, 401, "peer authentication failed"],
    ["a body", { body: new Uint8Array(1) }, 401, "peer authentication failed"],
    ["another node", { destination: "node-b" }, 409, "peer request targets a different node session"],
    ["another method, once it is known who asks", { method: "POST" }, 405, "method not allowed"],
    ["another method of a stranger", { method: "POST", key: otherKey }, 401, "peer authentication failed"],
    ["no challenge", { headers: [] }, 400, "missing probe challenge"],
    ["a short challenge", { headers: [["x-cells-probe-challenge", "ab"]] }, 400, "invalid probe challenge"],
    [
      "a challenge in capitals",
      { headers: [["x-cells-probe-challenge", challenge.toUpperCase()]] },
      400,
      "invalid probe challenge",
    ],
    [
      "two challenges",
      {
        headers: [
          ["x-cells-probe-challenge", challenge],
          ["X-Cells-Probe-Challenge", challenge],
        ],
      },
      400,
      "invalid probe challenge",
    ],
  ])("%s, with the version and the node's time", (_, asked, status, body) => {
    const reply = ask(asked);
    expect(reply).toMatchObject({ status, body });
    expect(reply.headers).toMatchObject({
      "x-cells-peer-version": "5",
      date: "Mon, 30 Nov 2026 12:00:00 GMT",
    });
    expect(reply.headers).not.toHaveProperty("x-cells-route-error");
  });
});

describe("the prober sees", () => {
  const good = JSON.parse(ask().body);
  const expected = { node: "node-a", addr: "10.0.0.1:8081", probePublicKey: probeKey.publicKeyHex };
  it.each<[string, object | string, object, string | undefined]>([
    ["a proof", good, {}, undefined],
    ["no JSON", "{", {}, "malformed"],
    ["another format", { ...good, version: 2 }, {}, "malformed"],
    ["another challenge's answer", { ...good, challenge: "cd".repeat(32) }, {}, "malformed"],
    ["another node", good, { node: "node-b" }, "other-node"],
    ["another address", good, { addr: "10.0.0.2:8081" }, "other-address"],
    ["another process", good, { probePublicKey: createProbeKey().publicKeyHex }, "other-process"],
    ["a changed signature", { ...good, signature: "0".repeat(128) }, {}, "other-process"],
  ])("%s", (_, answer, against, fault) => {
    const text = typeof answer === "string" ? answer : JSON.stringify(answer);
    expect(faultOfProof({ text, challenge }, { ...expected, ...against })).toBe(fault);
  });
});
