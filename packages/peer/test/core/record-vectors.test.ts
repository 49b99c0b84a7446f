import { createHash, createSecretKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { isOfferingNonce, offeringNonce } from "../../src/core/offering-nonce.ts";
import { deriveRecordKeys } from "../../src/core/record-keys.ts";
import { RecordOpener, RecordSealer } from "../../src/core/record-layer.ts";
import { recordTranscript } from "../../src/core/record-transcript.ts";
import { PeerRecordError } from "../../src/errors.ts";
import { recordVectorsText } from "../support/make-record-vectors.ts";
import { keyOf } from "../support/peer-vectors.ts";

const text = readFileSync(new URL("../vectors/records.json", import.meta.url), "utf8");
const vectors = z
  .object({
    handshakes: z.array(
      z.object({
        name: z.string(),
        fleetKeyHex: z.string(),
        source: z.string(),
        destination: z.string(),
        timestamp: z.string(),
        signedNonce: z.string(),
        kind: z.enum(["do", "rpc", "cluster"]),
        offer: z.string(),
        transcript: z.string(),
        transcriptSha256: z.string(),
        diallerKeyHex: z.string(),
        diallerIvHex: z.string(),
        listenerKeyHex: z.string(),
        listenerIvHex: z.string(),
        acceptance: z.string(),
      }),
    ),
    offeringNonces: z.array(z.object({ fleetKeyHex: z.string(), random: z.string(), nonce: z.string() })),
    streams: z.array(
      z.object({
        name: z.string(),
        firstRecord: z.number(),
        keyHex: z.string(),
        ivHex: z.string(),
        plaintexts: z.array(z.union([z.string(), z.number()])),
        streamBytes: z.number(),
        streamSha256: z.string(),
        streamHex: z.string().optional(),
      }),
    ),
    rejected: z.array(
      z.object({
        name: z.string(),
        keyHex: z.string(),
        ivHex: z.string(),
        streamHex: z.string(),
        fault: z.string(),
        delivered: z.string(),
      }),
    ),
  })
  .parse(JSON.parse(text));

const keysOf = ({ keyHex, ivHex }: { keyHex: string; ivHex: string }) => ({
  key: createSecretKey(Buffer.from(keyHex, "hex")),
  iv: Buffer.from(ivHex, "hex"),
});

const bytesOf = (plaintext: string | number) =>
  typeof plaintext === "string"
    ? Buffer.from(plaintext)
    : Buffer.from(Array.from({ length: plaintext }, (_, i) => i));

test("the file is what its generator makes", () => {
  expect(recordVectorsText()).toBe(text);
});

test.each(vectors.handshakes)("handshake $name: transcript, keys and proof are the same", (one) => {
  const [acceptance = "", proof] = one.acceptance.split("; proof=");
  const transcript = recordTranscript({ ...one, nonce: one.signedNonce, acceptance });
  expect(transcript).toBe(one.transcript);
  expect(createHash("sha256").update(transcript).digest("hex")).toBe(one.transcriptSha256);

  const keys = deriveRecordKeys({ key: keyOf(one.fleetKeyHex), transcript });
  expect(keys.dialler.key.export().toString("hex")).toBe(one.diallerKeyHex);
  expect(Buffer.from(keys.dialler.iv).toString("hex")).toBe(one.diallerIvHex);
  expect(keys.listener.key.export().toString("hex")).toBe(one.listenerKeyHex);
  expect(Buffer.from(keys.listener.iv).toString("hex")).toBe(one.listenerIvHex);
  expect(keys.proof).toBe(proof);
});

test.each(vectors.offeringNonces)("nonce $nonce is made the same, and known under its key alone", (one) => {
  const key = keyOf(one.fleetKeyHex);
  expect(offeringNonce(key, one.random)).toBe(one.nonce);
  expect(isOfferingNonce(key, one.nonce)).toBe(true);
  expect(isOfferingNonce(keyOf("77".repeat(32)), one.nonce)).toBe(false);
  const last = one.nonce.endsWith("0") ? "1" : "0";
  expect(isOfferingNonce(key, one.nonce.slice(0, -1) + last)).toBe(false);
  expect(isOfferingNonce(key, last + one.nonce.slice(1))).toBe(one.nonce.startsWith(last));
});

test("no two handshakes share a key", () => {
  const keys = vectors.handshakes.flatMap(({ diallerKeyHex, listenerKeyHex }) => [
    diallerKeyHex,
    listenerKeyHex,
  ]);
  expect(new Set(keys).size).toBe(keys.length);
});

test.each(vectors.streams)("stream $name: sealed the same, and opened again", (one) => {
  const counters = { firstRecord: one.firstRecord };
  const sealer = new RecordSealer(keysOf(one), counters);
  const sealed = one.plaintexts.flatMap((plaintext) => sealer.seal(bytesOf(plaintext)));
  const stream = Buffer.concat([...sealed, sealer.end()]);
  expect(stream).toHaveLength(one.streamBytes);
  expect(createHash("sha256").update(stream).digest("hex")).toBe(one.streamSha256);
  if (one.streamHex !== undefined) expect(stream.toString("hex")).toBe(one.streamHex);

  const opener = new RecordOpener(keysOf(one), counters);
  const { data, ended } = opener.push(stream);
  expect(ended).toBe(true);
  expect(Buffer.concat(data).equals(Buffer.concat(one.plaintexts.map(bytesOf)))).toBe(true);
  opener.finish();
});

test.each(vectors.rejected)("rejected: $name", (one) => {
  const opener = new RecordOpener(keysOf(one));
  const delivered: Uint8Array[] = [];
  const read = () => {
    for (const byte of Buffer.from(one.streamHex, "hex"))
      delivered.push(...opener.push(Uint8Array.of(byte)).data);
    opener.finish();
  };
  expect(read).toThrow(PeerRecordError);
  expect(read).toThrow(expect.objectContaining({ fault: "failed" }));
  expect(Buffer.concat(delivered).toString()).toBe(one.delivered);

  const again = new RecordOpener(keysOf(one));
  expect(() => {
    again.push(Buffer.from(one.streamHex, "hex"));
    again.finish();
  }).toThrow(expect.objectContaining({ code: "CELLKIT_PEER_RECORD", fault: one.fault }));
});
