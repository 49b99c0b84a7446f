import { expect, test } from "vitest";
import { sha256Hex } from "../../src/core/sign.ts";
import { RequestVerifier } from "../../src/core/verifier.ts";
import { bodyBytes, keyOf, peerVectors } from "../support/peer-vectors.ts";

type Receiver = (typeof peerVectors.verifying)[number]["receiver"];

function verifierOf(receiver: Receiver): RequestVerifier {
  return new RequestVerifier({
    keys: [keyOf(receiver.keyHex)],
    version: receiver.protocolVersion,
    self: receiver.nodeId,
    replayCapacity: receiver.maxReplayEntries,
  });
}

test.each(peerVectors.verifying)(
  "vector $name: every step is answered as expected",
  ({ receiver, steps }) => {
    const verifier = verifierOf(receiver);
    for (const [index, step] of steps.entries()) {
      const verdict = verifier.verify(
        {
          method: step.method,
          target: step.pathAndQuery,
          headers: Object.entries(step.headers),
          body: bodyBytes(step.body),
        },
        step.nowMs,
      );
      expect(verdict, `step ${index}`).toMatchObject(step.expect);
      if (verdict.ok) expect(verdict.source).toBe(step.headers["x-cells-peer-source"]);
    }
  },
);

test.each(peerVectors.verifying)("vector $name: head and commit answer the same", ({ receiver, steps }) => {
  const verifier = verifierOf(receiver);
  for (const [index, step] of steps.entries()) {
    const request = { method: step.method, target: step.pathAndQuery, headers: Object.entries(step.headers) };
    const head = verifier.verifyHead(request, step.nowMs);
    const verdict = head.ok ? head.commit(sha256Hex(bodyBytes(step.body))) : head;
    expect(verdict, `step ${index}`).toMatchObject(step.expect);
  }
});

test.each(peerVectors.lenient)("$name is refused, though others tolerate it", (step) => {
  const receiver = peerVectors.verifying[0]?.receiver;
  if (receiver === undefined) throw new TypeError("the vectors have no receiver");
  const request = { method: step.method, target: step.pathAndQuery, headers: Object.entries(step.headers) };
  expect(verifierOf(receiver).verify(request, step.nowMs)).toMatchObject({
    ok: false,
    error: "unauthorized",
  });
});
