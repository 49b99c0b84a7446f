import { describe, expect, test } from "vitest";
import { canonicalText } from "../../src/core/canonical.ts";
import { emptySha256, peerHeader } from "../../src/core/constants.ts";
import { sha256Hex } from "../../src/core/sign.ts";
import { RequestVerifier } from "../../src/core/verifier.ts";
import {
  fleetKey,
  nonceOf,
  nowMs,
  otherKey,
  peer,
  self,
  signedRequest,
  withHeader,
} from "../support/signed.ts";

const options = { keys: [fleetKey], version: 5, self } as const;
const good = signedRequest();
const body = Buffer.from("a body");
const withBody = signedRequest({ method: "POST", target: "/peer/handoff", body });
const bodyHash = sha256Hex(body);
const accepted = { ok: true, source: peer };

describe("headers", () => {
  test("names may be in any case and other headers between them", () => {
    const headers = good.headers.flatMap(
      ([name, value]) =>
        [
          [name.toUpperCase(), value],
          ["host", "b"],
        ] as const,
    );
    expect(new RequestVerifier(options).verify({ ...good, headers }, nowMs)).toEqual(accepted);
  });

  test.each(Object.values(peerHeader))("%s given twice is refused, even with the same value", (name) => {
    const value = good.headers.find(([given]) => given === name)?.[1] ?? "";
    for (const other of [value, "x"]) {
      const twice = withHeader(good, name, [value, other]);
      expect(new RequestVerifier(options).verify(twice, nowMs)).toMatchObject({
        error: "unauthorized",
        status: 401,
      });
    }
  });

  test.each([
    ["", "incompatible-version"],
    ["5 ", "incompatible-version"],
    ["+5", "incompatible-version"],
    ["5\u00e9", "unauthorized"],
    ["\u0000", "unauthorized"],
  ])("version %j is %s", (version, error) => {
    const request = withHeader(good, peerHeader.version, version);
    expect(new RequestVerifier(options).verify(request, nowMs)).toMatchObject({ error });
  });

  test.each(["+1", "01", "1 ", " 1", "1e3", "0x1", "-0", "", "99999999999999999999999", "1.0"])(
    "timestamp %j is refused",
    (timestamp) => {
      const request = withHeader(good, peerHeader.timestamp, timestamp);
      expect(new RequestVerifier(options).verify(request, 1)).toMatchObject({ error: "unauthorized" });
    },
  );
});

describe("clocks", () => {
  test.each([
    [29_000, true],
    [-29_000, true],
    [30_000, true],
    [-30_000, true],
    [30_001, false],
    [-30_001, false],
    [31_000, false],
  ])("a clock that is %i ms off: accepted %s", (offMs, ok) => {
    expect(new RequestVerifier(options).verify(good, nowMs + offMs)).toMatchObject({ ok });
  });

  test("a clock that is no number accepts nothing", () => {
    expect(new RequestVerifier(options).verify(good, Number.NaN)).toMatchObject({ error: "unauthorized" });
  });

  test("another window is another bound", () => {
    const verifier = new RequestVerifier({ ...options, windowMs: 1_000 });
    expect(verifier.verify(good, nowMs + 1_001)).toMatchObject({ ok: false });
    expect(verifier.verify(good, nowMs + 1_000)).toEqual(accepted);
  });

  test("what is stamped before not-before is refused, what is stamped at it is not", () => {
    const verifier = new RequestVerifier({ ...options, notBeforeMs: nowMs });
    const before = signedRequest({ timeMs: nowMs - 1 });
    expect(verifier.verify(before, nowMs)).toMatchObject({ error: "unauthorized" });
    expect(verifier.verify(good, nowMs)).toEqual(accepted);
  });

  test("a restart under the same name accepts nothing of what was accepted before it", () => {
    const first = new RequestVerifier(options);
    const requests = Array.from({ length: 50 }, (_, i) =>
      signedRequest({ nonce: nonceOf(i), timeMs: nowMs + i }),
    );
    for (const request of requests) expect(first.verify(request, nowMs + 100).ok).toBe(true);

    const restartMs = nowMs + 200;
    const second = new RequestVerifier({ ...options, notBeforeMs: restartMs });
    const forgetful = new RequestVerifier(options);
    for (const request of requests) {
      expect(second.verify(request, restartMs).ok).toBe(false);
      expect(second.verifyHead(request, restartMs).ok).toBe(false);
      expect(forgetful.verify(request, restartMs).ok).toBe(true);
    }
    const fresh = signedRequest({ nonce: nonceOf(99), timeMs: restartMs });
    expect(second.verify(fresh, restartMs)).toEqual(accepted);
  });

  test("a clock that leaps ahead and returns opens nothing again", () => {
    const verifier = new RequestVerifier(options);
    expect(verifier.verify(good, nowMs)).toEqual(accepted);
    const later = signedRequest({ nonce: nonceOf(2), timeMs: nowMs + 120_000 });
    expect(verifier.verify(later, nowMs + 120_000)).toEqual(accepted);
    expect(verifier.verify(good, nowMs)).toMatchObject({ error: "unauthorized" });
    const fresh = signedRequest({ nonce: nonceOf(3), timeMs: nowMs + 10 });
    expect(verifier.verify(fresh, nowMs + 10)).toEqual(accepted);
  });
});

describe("keys", () => {
  test("each of two keys may have signed", () => {
    const verifier = new RequestVerifier({ ...options, keys: [otherKey, fleetKey] });
    expect(verifier.verify(good, nowMs)).toEqual(accepted);
    const byOther = signedRequest({ key: otherKey, nonce: nonceOf(2) });
    expect(verifier.verify(byOther, nowMs)).toEqual(accepted);
  });

  test("a nonce is spent whichever key signed it", () => {
    const verifier = new RequestVerifier({ ...options, keys: [otherKey, fleetKey] });
    expect(verifier.verify(good, nowMs)).toEqual(accepted);
    expect(verifier.verify(signedRequest({ key: otherKey }), nowMs)).toMatchObject({ error: "replay" });
  });

  test("a function is asked for each request", () => {
    let keys = [otherKey];
    const verifier = new RequestVerifier({ ...options, keys: () => keys });
    expect(verifier.verify(good, nowMs)).toMatchObject({ error: "unauthorized" });
    keys = [otherKey, fleetKey];
    expect(verifier.verify(good, nowMs)).toEqual(accepted);
    keys = [];
    expect(verifier.verify(signedRequest({ nonce: nonceOf(2) }), nowMs)).toMatchObject({
      error: "unauthorized",
    });
  });

  test("an establishment tells which key signed", () => {
    const verifier = new RequestVerifier({ ...options, keys: [otherKey, fleetKey] });
    const verdict = verifier.verifyEstablishment(signedRequest({ target: "/peer/tunnel" }), nowMs);
    expect(verdict).toMatchObject({ ...accepted, nonce: nonceOf(1), timestamp: String(nowMs) });
    expect(verdict.ok && verdict.key).toBe(fleetKey);
  });
});

describe("targets", () => {
  test.each([
    ["/__do/Room:1", true],
    ["/__rpc/Room:1", true],
    ["/__abort/Room%3A1/0", true],
    ["/peer/tunnel", true],
    ["/peer/tunnel?x", true],
    ["/peer/abort/Room%3A1/0", true],
    ["/__celld/probe", false],
    ["/peer/probe", false],
    ["/__log/append", false],
    ["/peer/log/seal", false],
    ["/__ws/Room:1?id=1&epoch=2", false],
    ["/__d1/__D1Database:1", false],
    ["/peer/tunnels", false],
    ["/__doing", false],
  ])("a request to %s for another node: stale owner %s", (target, staleOwner) => {
    const request = signedRequest({ target, destination: "another" });
    expect(new RequestVerifier(options).verify(request, nowMs)).toEqual({
      ok: false,
      error: "wrong-target",
      status: 409,
      message: "peer request targets a different node session",
      staleOwner,
    });
  });

  test("an absolute target is signed as its path and query", () => {
    const request = { ...signedRequest({ target: "/a?b" }), target: "http://10.0.0.1:8081/a?b" };
    expect(new RequestVerifier(options).verify(request, nowMs)).toEqual(accepted);
  });

  test("a line feed in method or target is refused, even under a good signature", () => {
    for (const [method, target] of [
      ["GET\n/x", "/y"],
      ["GET", "/x\n/y"],
    ] as const) {
      const fields = {
        version: 5,
        bodySha256: emptySha256,
        source: peer,
        destination: self,
        nonce: nonceOf(1),
      };
      const text = canonicalText({ ...fields, method, target, timestamp: String(nowMs) });
      const request = withHeader(good, peerHeader.signature, fleetKey.macHex(text));
      const verdict = new RequestVerifier(options).verify({ ...request, method, target }, nowMs);
      expect(verdict).toMatchObject({ error: "unauthorized" });
    }
  });
});

describe("before the body is read", () => {
  test("a head that passed counts only once its body has the hash", () => {
    const verifier = new RequestVerifier(options);
    const head = verifier.verifyHead(withBody, nowMs);
    expect(head).toMatchObject({ ...accepted, bodySha256: bodyHash });
    if (!head.ok) return;
    expect(head.commit(sha256Hex(Buffer.from("another")))).toMatchObject({
      error: "unauthorized",
      status: 401,
    });
    expect(head.commit("")).toMatchObject({ error: "unauthorized" });
    expect(head.commit(bodyHash)).toEqual({ ok: true });
    expect(head.commit(bodyHash)).toMatchObject({ error: "replay" });
    expect(verifier.verify(withBody, nowMs)).toMatchObject({ error: "replay" });
    expect(verifier.verifyHead(withBody, nowMs)).toMatchObject({ error: "replay" });
  });

  test("a head that is given up leaves its nonce unused", () => {
    const verifier = new RequestVerifier(options);
    expect(verifier.verifyHead(withBody, nowMs).ok).toBe(true);
    expect(verifier.verify(withBody, nowMs)).toEqual(accepted);
  });

  test.each([undefined, "", "A".repeat(64), "0".repeat(63)])("a body hash of %j is refused", (value) => {
    const request = withHeader(withBody, peerHeader.bodySha256, value);
    expect(new RequestVerifier(options).verifyHead(request, nowMs)).toMatchObject({ error: "unauthorized" });
  });

  test("two copies of a head may pass, one of them counts", () => {
    const verifier = new RequestVerifier(options);
    const [one, other] = [verifier.verifyHead(withBody, nowMs), verifier.verifyHead(withBody, nowMs)];
    if (!one.ok || !other.ok) throw new TypeError("a head was refused");
    expect(other.commit(bodyHash)).toEqual({ ok: true });
    expect(one.commit(bodyHash)).toMatchObject({ error: "replay" });
  });

  test("a copy whose body is dragged out past the memory of nonces does not count", () => {
    const verifier = new RequestVerifier(options);
    const [one, copy] = [verifier.verifyHead(withBody, nowMs), verifier.verifyHead(withBody, nowMs)];
    if (!one.ok || !copy.ok) throw new TypeError("a head was refused");
    expect(one.commit(bodyHash)).toEqual({ ok: true });
    const muchLater = nowMs + 300_000;
    for (let i = 0; i < 5; i += 1) {
      const other = signedRequest({ nonce: nonceOf(100 + i), timeMs: muchLater });
      expect(verifier.verify(other, muchLater)).toEqual(accepted);
    }
    expect(copy.commit(bodyHash)).toMatchObject({ error: "replay" });
  });

  test("nor after the request was accepted whole", () => {
    const verifier = new RequestVerifier(options);
    const copy = verifier.verifyHead(withBody, nowMs);
    if (!copy.ok) throw new TypeError("a head was refused");
    expect(verifier.verify(withBody, nowMs)).toEqual(accepted);
    const muchLater = nowMs + 300_000;
    expect(verifier.verify(signedRequest({ nonce: nonceOf(9), timeMs: muchLater }), muchLater)).toEqual(
      accepted,
    );
    expect(copy.commit(bodyHash)).toMatchObject({ error: "replay" });
  });

  test("a long upload counts, however long after its head", () => {
    const verifier = new RequestVerifier(options);
    const head = verifier.verifyHead(withBody, nowMs);
    if (!head.ok) throw new TypeError("a head was refused");
    const muchLater = nowMs + 300_000;
    for (let i = 0; i < 5; i += 1) {
      const other = signedRequest({ nonce: nonceOf(100 + i), timeMs: muchLater });
      expect(verifier.verify(other, muchLater)).toEqual(accepted);
    }
    expect(head.commit(bodyHash)).toEqual({ ok: true });
  });

  test("nor one of two whose shared ticket was forgotten before either ended", () => {
    const verifier = new RequestVerifier(options);
    const ahead = signedRequest({ body: Buffer.from("body"), timeMs: nowMs + 30_000 });
    const [one, copy] = [verifier.verifyHead(ahead, nowMs), verifier.verifyHead(ahead, nowMs + 59_000)];
    if (!one.ok || !copy.ok) throw new TypeError("a head was refused");
    const laterMs = nowMs + 61_000;
    for (let i = 0; i < 1_100; i += 1) {
      expect(
        verifier.verifyHead(signedRequest({ nonce: nonceOf(100 + i), timeMs: laterMs }), laterMs).ok,
      ).toBe(true);
    }
    const hash = sha256Hex(Buffer.from("body"));
    expect(one.commit(hash)).toEqual({ ok: true });
    expect(copy.commit(hash)).toMatchObject({ error: "replay" });
    // Nor when the memory of nonces has forgotten it, too.
    const muchLater = nowMs + 300_000;
    for (const number of [1, 2].map((i) => 5_000 + i)) {
      const other = signedRequest({ nonce: nonceOf(number), timeMs: muchLater });
      expect(verifier.verify(other, muchLater)).toEqual(accepted);
    }
    expect(copy.commit(hash)).toMatchObject({ error: "replay" });
  });

  test("a forgotten ticket is not made anew by a clock that leaps and returns", () => {
    const verifier = new RequestVerifier({ ...options, replayCapacity: 1 });
    expect(verifier.verifyHead(withBody, nowMs).ok).toBe(true);
    const leapMs = nowMs + 61_000;
    expect(verifier.verifyHead(signedRequest({ nonce: nonceOf(5), timeMs: leapMs }), leapMs).ok).toBe(true);
    expect(verifier.verifyHead(withBody, nowMs)).toMatchObject({ error: "unauthorized" });
  });

  test("a leap of the clock does not leave a memory full that is shared with open heads", () => {
    const verifier = new RequestVerifier({ ...options, replayCapacity: 4 });
    const verify = (number: number, at: number) =>
      verifier.verify(signedRequest({ nonce: nonceOf(number), timeMs: at }), at);
    expect(verify(1, nowMs + 3_600_000).ok).toBe(true);
    for (const number of [2, 3]) expect(verify(number, nowMs).ok).toBe(true);
    const openMs = nowMs + 60_000;
    expect(verifier.verifyHead(signedRequest({ nonce: nonceOf(4), timeMs: openMs }), openMs).ok).toBe(true);
    expect(verify(5, openMs + 1)).toMatchObject({ ok: true });
  });

  test("eight copies of a head may be open, not more", () => {
    const verifier = new RequestVerifier(options);
    const heads = Array.from({ length: 10 }, () => verifier.verifyHead(withBody, nowMs));
    expect(heads.filter(({ ok }) => ok)).toHaveLength(8);
    expect(heads.at(-1)).toMatchObject({ error: "replay", status: 409 });
    const [first] = heads;
    expect(first?.ok && first.commit(bodyHash)).toEqual({ ok: true });
  });

  test.each([
    ["content-length", "1", false],
    ["Content-Length", "0", true],
    ["Transfer-Encoding", "chunked", false],
  ])("a head signed for no body, with %s %s, is accepted: %s", (name, value, isAccepted) => {
    const request = { ...good, headers: [...good.headers, [name, value] as const] };
    expect(new RequestVerifier(options).verifyHead(request, nowMs).ok).toBe(isAccepted);
    expect(new RequestVerifier(options).verifyEstablishment(request, nowMs).ok).toBe(isAccepted);
  });

  test("open heads count within the capacity, and are forgotten with time", () => {
    const verifier = new RequestVerifier({ ...options, replayCapacity: 2 });
    const heads = [1, 2].map((i) => verifier.verifyHead(signedRequest({ nonce: nonceOf(i) }), nowMs));
    expect(heads.map(({ ok }) => ok)).toEqual([true, true]);
    const third = signedRequest({ nonce: nonceOf(3) });
    expect(verifier.verifyHead(third, nowMs)).toMatchObject({ error: "replay-capacity", status: 503 });
    expect(verifier.verify(third, nowMs)).toMatchObject({ error: "replay-capacity" });
    const laterMs = nowMs + 60_001;
    const later = signedRequest({ nonce: nonceOf(4), timeMs: laterMs });
    expect(verifier.verifyHead(later, laterMs)).toMatchObject(accepted);
  });
});

test.each([
  ["keys", { keys: [] }],
  ["self", { self: "" }],
  ["self", { self: "a b" }],
  ["windowMs", { windowMs: 0 }],
  ["windowMs", { windowMs: Number.NaN }],
  ["replayCapacity", { replayCapacity: 0 }],
  ["replayCapacity", { replayCapacity: 1.5 }],
])("a verifier cannot be made with a wrong %s", (option, change) => {
  expect(() => new RequestVerifier({ ...options, ...change })).toThrow(
    expect.objectContaining({ code: "CELLKIT_PEER_OPTION", option }),
  );
});
