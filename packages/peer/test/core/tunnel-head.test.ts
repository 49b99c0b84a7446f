// Both ends of a handshake, without a socket between them.
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import { AnswerHeadReader, maxAnswerHeadBytes, parseAnswerHead } from "../../src/core/answer-head.ts";
import { peerHeader } from "../../src/core/constants.ts";
import { RecordOpener, RecordSealer } from "../../src/core/record-layer.ts";
import type { RecordsMode } from "../../src/core/records-offer.ts";
import type { HeaderPairs } from "../../src/core/signed-head.ts";
import {
  acceptEstablishment,
  judgeEstablishment,
  type OpenedTunnel,
  type ReceivedEstablishment,
  type TunnelRefusal,
} from "../../src/core/tunnel-accept.ts";
import { type Establishment, establishmentRequest, judgeTunnelAnswer } from "../../src/core/tunnel-head.ts";
import { type ReceivedHead, RequestVerifier } from "../../src/core/verifier.ts";
import { PeerError, TunnelHeadError } from "../../src/errors.ts";
import { fleetKey, nonceOf, nowMs, otherKey, peer, self } from "../support/signed.ts";
import { cutAt, everyCut } from "../support/splits.ts";

const fuzzing = { numRuns: inject("size") === "long" ? 100_000 : 1_000, seed: inject("seed") };

const asked: Establishment = {
  key: fleetKey,
  host: "10.0.0.12:8081",
  source: peer,
  destination: self,
  timeMs: nowMs,
  nonce: nonceOf(1),
  kind: "do",
};
const offering: Establishment = { ...asked, kind: "cluster", recordsNonce: nonceOf(2) };

/** A request head as a server's parser gives it. */
function received(bytes: Buffer): ReceivedHead {
  const [line = "", ...lines] = bytes.toString("latin1").split("\r\n\r\n")[0]?.split("\r\n") ?? [];
  const [method = "", target = ""] = line.split(" ");
  const headers = lines.map(
    (one) => [one.slice(0, one.indexOf(":")), one.slice(one.indexOf(":") + 2)] as const,
  );
  return { method, target, headers };
}

const newVerifier = () => new RequestVerifier({ keys: [fleetKey], version: 5, self });
const judged = (request: ReceivedHead): ReceivedEstablishment | TunnelRefusal =>
  judgeEstablishment(request, newVerifier(), nowMs);

function good(establishment: Establishment): ReceivedEstablishment {
  const verdict = judged(received(establishmentRequest(establishment)));
  if (!verdict.ok) throw new TypeError(`refused: ${verdict.message}`);
  return verdict;
}

function opened(establishment: Establishment, records: RecordsMode = "offered"): OpenedTunnel {
  const verdict = acceptEstablishment(good(establishment), {
    records,
    sourceHasRecords: false,
    recordsNonce: nonceOf(3),
  });
  if (!verdict.ok) throw new TypeError(`refused: ${verdict.message}`);
  return verdict;
}

function headOf(bytes: Uint8Array) {
  const read = new AnswerHeadReader().push(bytes);
  if (read === undefined) throw new TypeError("no whole head");
  return read.head;
}

const replaced = (request: ReceivedHead, name: string, ...values: string[]): ReceivedHead => ({
  ...request,
  headers: [
    ...request.headers.filter(([given]) => given !== name),
    ...values.map((value) => [name, value] as const),
  ],
});

describe("the dialler's request", () => {
  test("is the one of the protocol page", () => {
    const text = establishmentRequest(offering).toString("latin1");
    expect(text).toMatch(
      /^GET \/peer\/tunnel HTTP\/1\.1\r\nHost: 10\.0\.0\.12:8081\r\nUpgrade: celld-tunnel\r\nConnection: upgrade\r\n/,
    );
    expect(text).toContain("\r\nx-cells-tunnel-version: 5\r\nx-cells-tunnel-kind: cluster\r\n");
    expect(text).toContain(`\r\nx-cellkit-records: records-1; nonce=${nonceOf(2)}\r\n`);
    expect(text.endsWith("\r\n\r\n")).toBe(true);
    expect(establishmentRequest(asked).includes("x-cellkit")).toBe(false);
  });

  test.each([
    ["host", { host: "" }],
    ["host", { host: "a\r\nx: y" }],
    ["recordsNonce", { recordsNonce: "x" }],
    ["source", { source: "a\nb" }],
  ])("cannot be made with a wrong %s", (option, change) => {
    expect(() => establishmentRequest({ ...asked, ...change })).toThrow(
      expect.objectContaining({ code: "CELLKIT_PEER_OPTION", option }),
    );
  });
});

describe("the listener's checks", () => {
  const request = received(establishmentRequest(offering));

  test("a good one is understood", () => {
    expect(judged(request)).toMatchObject({
      ok: true,
      source: peer,
      destination: self,
      kind: "cluster",
      nonce: nonceOf(1),
    });
  });

  test.each<[string, ReceivedHead, number, string]>([
    ["no upgrade", replaced(request, "Upgrade"), 400, "tunnel establishment must upgrade"],
    ["another upgrade", replaced(request, "Upgrade", "websocket"), 400, "tunnel establishment must upgrade"],
    [
      "two upgrades",
      replaced(request, "Upgrade", "celld-tunnel", "celld-tunnel"),
      400,
      "tunnel establishment must upgrade",
    ],
    ["no signature", replaced(request, peerHeader.signature), 401, "peer authentication failed"],
    [
      "another version",
      replaced(request, peerHeader.version, "2"),
      426,
      "peer protocol version is incompatible",
    ],
    [
      "no tunnel version",
      replaced(request, "x-cells-tunnel-version"),
      426,
      "peer tunnel version is incompatible",
    ],
    [
      "another tunnel version",
      replaced(request, "x-cells-tunnel-version", "6"),
      426,
      "peer tunnel version is incompatible",
    ],
    ["no kind", replaced(request, "x-cells-tunnel-kind"), 400, "unknown tunnel kind"],
    ["another kind", replaced(request, "x-cells-tunnel-kind", "constructor"), 400, "unknown tunnel kind"],
    ["two kinds", replaced(request, "x-cells-tunnel-kind", "do", "do"), 400, "unknown tunnel kind"],
    [
      "a malformed offer",
      replaced(request, "x-cellkit-records", "records-1; nonce=x"),
      400,
      "malformed offer of records",
    ],
    [
      "an empty offer",
      replaced(request, "x-cellkit-records", "records-1"),
      400,
      "malformed offer of records",
    ],
    [
      "two offers",
      replaced(
        request,
        "x-cellkit-records",
        `records-1; nonce=${nonceOf(2)}`,
        `records-1; nonce=${nonceOf(2)}`,
      ),
      400,
      "malformed offer of records",
    ],
  ])("%s is refused", (_what, changed, status, message) => {
    expect(judged(changed)).toMatchObject({ ok: false, status, message, staleOwner: false });
  });

  test("the upgrade is looked at before the signature, the signature before the rest", () => {
    const unsigned = replaced(replaced(request, peerHeader.signature), "x-cells-tunnel-kind", "x");
    expect(judged(unsigned)).toMatchObject({ status: 401 });
    expect(judged(replaced(unsigned, "Upgrade", "x"))).toMatchObject({
      status: 400,
      message: "tunnel establishment must upgrade",
    });
  });

  test("for another node: 409 with the stale marker", () => {
    const other = received(establishmentRequest({ ...offering, destination: "another" }));
    expect(judged(other)).toMatchObject({ status: 409, error: "wrong-target", staleOwner: true });
  });

  test("the same establishment twice is a replay", () => {
    const verifier = newVerifier();
    expect(judgeEstablishment(request, verifier, nowMs).ok).toBe(true);
    expect(judgeEstablishment(request, verifier, nowMs)).toMatchObject({ error: "replay", status: 409 });
  });

  test("an offer in another version of records is none to us", () => {
    expect(judged(replaced(request, "x-cellkit-records", "records-2; nonce=1"))).toMatchObject({
      ok: true,
      offer: undefined,
    });
  });
});

describe("the two ends together", () => {
  test("without an offer the tunnel is plain, and the 101 is the protocol's", () => {
    const { answer, keys } = opened(asked);
    expect(keys).toBeUndefined();
    const head = headOf(answer);
    expect(head.status).toBe(101);
    expect(Object.fromEntries(head.headers)).toEqual({
      upgrade: "celld-tunnel",
      connection: "upgrade",
      "x-cells-tunnel-version": "5",
      "x-cells-peer-version": "5",
    });
    expect(judgeTunnelAnswer(head, asked, { insist: false })).toEqual({ outcome: "open", keys: undefined });
  });

  test("with an offer both hold the same keys, one for each direction", () => {
    const { answer, keys } = opened(offering);
    const verdict = judgeTunnelAnswer(headOf(answer), offering, { insist: true });
    if (verdict.outcome !== "open" || verdict.keys === undefined || keys === undefined)
      throw new TypeError("no keys");
    const [theirs, ours] = [keys, verdict.keys];
    expect(
      new RecordOpener(theirs.dialler).push(
        Buffer.concat(new RecordSealer(ours.dialler).seal(Buffer.from("a"))),
      ).data,
    ).toHaveLength(1);
    expect(
      new RecordOpener(ours.listener).push(
        Buffer.concat(new RecordSealer(theirs.listener).seal(Buffer.from("b"))),
      ).data,
    ).toHaveLength(1);
    expect(ours.dialler.key.equals(ours.listener.key)).toBe(false);
  });

  test("a fresh nonce of the listener makes other keys, so a played-back handshake opens nothing", () => {
    const establishment = good(offering);
    const accept = (nonce: number) =>
      acceptEstablishment(establishment, { sourceHasRecords: false, recordsNonce: nonceOf(nonce) });
    const [one, other] = [accept(3), accept(4)];
    if (!one.ok || !other.ok || one.keys === undefined || other.keys === undefined)
      throw new TypeError("no keys");
    expect(one.keys.dialler.key.equals(other.keys.dialler.key)).toBe(false);
  });

  test.each<[string, (head: ReceivedHead) => ReceivedHead]>([
    ["the kind", (head) => replaced(head, "x-cells-tunnel-kind", "do")],
    ["the dialler's nonce", (head) => replaced(head, "x-cellkit-records", `records-1; nonce=${nonceOf(9)}`)],
  ])("who changes %s on the way is found out by the proof", (_what, change) => {
    const verdict = judged(change(received(establishmentRequest(offering))));
    if (!verdict.ok) throw new TypeError("refused");
    const accepted = acceptEstablishment(verdict, { sourceHasRecords: true, recordsNonce: nonceOf(3) });
    if (!accepted.ok) throw new TypeError("refused");
    const judge = () => judgeTunnelAnswer(headOf(accepted.answer), offering, { insist: true });
    expect(judge).toThrow(expect.objectContaining({ code: "CELLKIT_PEER_TUNNEL_HEAD" }));
  });

  test.each<[string, (answer: string) => string]>([
    ["the listener's nonce", (answer) => answer.replace(nonceOf(3), nonceOf(8))],
    [
      "the proof",
      (answer) => answer.replace(/proof=(.)/, (_all, digit) => `proof=${digit === "0" ? "1" : "0"}`),
    ],
    ["the proof's length", (answer) => answer.replace(/proof=./, "proof=")],
    ["the version of records", (answer) => answer.replace("records-1", "records-2")],
    [
      "nothing but gives the acceptance twice",
      (answer) => answer.replace(/(x-cellkit-records.*\r\n)/, "$1$1"),
    ],
  ])("who changes %s in the answer is found out", (_what, change) => {
    const changed = Buffer.from(change(opened(offering).answer.toString("latin1")), "latin1");
    expect(changed.equals(opened(offering).answer)).toBe(false);
    expect(() => judgeTunnelAnswer(headOf(changed), offering, { insist: false })).toThrow(TunnelHeadError);
  });

  test("who takes the acceptance away gets no tunnel out of a dialler that insists", () => {
    const answer = opened(offering)
      .answer.toString("latin1")
      .replace(/x-cellkit-records.*\r\n/, "");
    const head = headOf(Buffer.from(answer, "latin1"));
    expect(judgeTunnelAnswer(head, offering, { insist: true })).toEqual({ outcome: "without-records" });
    expect(judgeTunnelAnswer(head, offering, { insist: false })).toEqual({
      outcome: "open",
      keys: undefined,
    });
  });

  test("who takes the offer away gets no tunnel out of a listener that knows the source", () => {
    const stripped = good({ ...offering, kind: "do", recordsNonce: undefined });
    const accept = (records: RecordsMode, sourceHasRecords: boolean) =>
      acceptEstablishment(stripped, { records, sourceHasRecords, recordsNonce: nonceOf(3) });
    expect(accept("offered", true)).toMatchObject({
      ok: false,
      status: 403,
      message: "peer tunnel must have records",
    });
    expect(accept("required", false)).toMatchObject({ ok: false, status: 403 });
    expect(accept("offered", false)).toMatchObject({ ok: true, keys: undefined });
  });

  test("an acceptance that nobody asked for is an error", () => {
    const head = headOf(opened(offering).answer);
    expect(() => judgeTunnelAnswer(head, asked, { insist: false })).toThrow(TunnelHeadError);
  });

  test("a listener with another key cannot accept", () => {
    const head = headOf(opened(offering).answer);
    expect(() => judgeTunnelAnswer(head, { ...offering, key: otherKey }, { insist: true })).toThrow(
      TunnelHeadError,
    );
  });
});

describe("the listener's answer", () => {
  const answer = (status: string, ...fields: string[]) =>
    parseAnswerHead([`HTTP/1.1 ${status}`, ...fields].join("\r\n"));
  const version = "x-cells-peer-version: 5";
  const stale = "X-Cells-Route-Error: stale-owner";

  test.each([
    ["no version", answer("101 Switching Protocols"), { outcome: "incompatible", version: undefined }],
    [
      "another version",
      answer("409 Conflict", "x-cells-peer-version: 2", stale),
      { outcome: "incompatible", version: "2" },
    ],
    ["the version twice", answer("101 x", version, version), { outcome: "incompatible", version: undefined }],
    ["409 with the marker", answer("409 Conflict", version, stale), { outcome: "stale" }],
    ["409 without", answer("409 Conflict", version), { outcome: "refused", status: 409 }],
    ["the marker on another status", answer("503 x", version, stale), { outcome: "refused", status: 503 }],
    ["200", answer("200 OK", version), { outcome: "refused", status: 200 }],
    ["401", answer("401", version), { outcome: "refused", status: 401 }],
  ])("%s", (_what, head, verdict) => {
    expect(judgeTunnelAnswer(head, asked, { insist: false })).toEqual(verdict);
  });

  test("is read the same however it is cut, and what stands behind it is kept", () => {
    const bytes = Buffer.concat([opened(offering).answer, Buffer.from([0, 1, 2])]);
    const expected = headOf(bytes);
    for (const pieces of everyCut(bytes)) {
      const reader = new AnswerHeadReader();
      const behind: Uint8Array[] = [];
      let head: typeof expected | undefined;
      for (const piece of pieces) {
        if (head !== undefined) behind.push(piece);
        else {
          const read = reader.push(piece);
          head = read?.head;
          if (read !== undefined) behind.push(read.rest);
        }
      }
      expect(head).toEqual(expected);
      expect([...Buffer.concat(behind)]).toEqual([0, 1, 2]);
    }
  });

  test.each([
    ["HTTP/1.0", "HTTP/1.0 101 x"],
    ["HTTP/2", "HTTP/2 101"],
    ["a status of two digits", "HTTP/1.1 10 x"],
    ["a folded line", "HTTP/1.1 101 x\r\na: b\r\n c"],
    ["a space before the colon", "HTTP/1.1 101 x\r\na : b"],
    ["no colon", "HTTP/1.1 101 x\r\nabc"],
    ["a bare line feed", "HTTP/1.1 101 x\r\na: b\nc: d"],
    ["a bare carriage return", "HTTP/1.1 101 x\r\na: b\rc"],
    ["a zero byte", "HTTP/1.1 101 x\r\na: b\u0000"],
    ["nothing", ""],
  ])("%s is no answer", (_what, text) => {
    expect(() => parseAnswerHead(text)).toThrow(TunnelHeadError);
  });

  test("a head above 16 KiB is refused, whole or in pieces", () => {
    const tooLong = expect.objectContaining({ code: "CELLKIT_PEER_TUNNEL_HEAD", rule: "over 16384 bytes" });
    const head = (bytes: number) => {
      const begin = "HTTP/1.1 101 x\r\na: ";
      return Buffer.from(`${begin}${"b".repeat(bytes - begin.length - 4)}\r\n\r\n`);
    };
    const bytewise = (bytes: Buffer) => {
      const reader = new AnswerHeadReader();
      for (const byte of bytes) if (reader.push(Uint8Array.of(byte)) !== undefined) return true;
      return false;
    };
    expect(headOf(head(maxAnswerHeadBytes)).status).toBe(101);
    expect(bytewise(head(maxAnswerHeadBytes))).toBe(true);
    expect(() => headOf(head(maxAnswerHeadBytes + 1))).toThrow(tooLong);
    expect(() => bytewise(head(maxAnswerHeadBytes + 1))).toThrow(tooLong);
    expect(() => bytewise(Buffer.alloc(maxAnswerHeadBytes + 1, "a"))).toThrow(tooLong);
  });

  test("whatever bytes come, cut anywhere, the verdict is the same or an error of ours", () => {
    const line = fc.constantFrom(
      "HTTP/1.1 101 x",
      "HTTP/1.1 409",
      version,
      stale,
      `x-cellkit-records: records-1; nonce=${nonceOf(3)}; proof=${"0".repeat(64)}`,
      "a: \u00ff",
      ": x",
      "",
    );
    const bytes = fc.oneof(
      fc
        .array(line, { maxLength: 6 })
        .map((lines) => Buffer.from(`${lines.join("\r\n")}\r\n\r\nrest`, "latin1")),
      fc.uint8Array({ maxLength: 120 }).map((random) => Buffer.from(random)),
    );
    const outcome = (pieces: readonly Uint8Array[]) => {
      try {
        const reader = new AnswerHeadReader();
        for (const piece of pieces) {
          const read = reader.push(piece);
          if (read !== undefined) return judgeTunnelAnswer(read.head, offering, { insist: true });
        }
        return "unfinished";
      } catch (error) {
        if (!(error instanceof PeerError)) throw error;
        return error.code;
      }
    };
    const property = fc.property(bytes, fc.array(fc.nat(400), { maxLength: 6 }), (given, cuts) => {
      expect(outcome(cutAt(given, cuts))).toEqual(outcome([given]));
    });
    fc.assert(property, fuzzing);
  });
});

test("whatever headers an establishment has, the listener refuses it with an answer, or understands it", () => {
  const base = received(establishmentRequest(offering));
  const value = fc.oneof(
    fc.string({ maxLength: 40, unit: "binary" }),
    fc.constantFrom("do", "5", "records-1; nonce=", "celld-tunnel"),
  );
  const change = fc.tuple(
    fc.nat(base.headers.length - 1),
    value,
    fc.constantFrom("replace", "add", "remove"),
  );
  const property = fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
    let headers: HeaderPairs = base.headers;
    for (const [index, text, how] of changes) {
      const [name = ""] = base.headers[index] ?? [];
      if (how !== "add") headers = headers.filter(([given]) => given !== name);
      if (how !== "remove") headers = [...headers, [name, text]];
    }
    const verdict = judged({ ...base, headers });
    if (!verdict.ok) expect([400, 401, 409, 426]).toContain(verdict.status);
    else expect(["do", "rpc", "cluster"]).toContain(verdict.kind);
  });
  fc.assert(property, fuzzing);
});
