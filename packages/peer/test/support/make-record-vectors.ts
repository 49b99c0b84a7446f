// Makes test/vectors/records.json: a second implementation of docs/protocol/records.md, which uses nothing of src and
// only AES-GCM, HMAC and SHA-256 of node:crypto (HKDF is written out). Everything comes from fixed inputs.
//
//   node test/support/make-record-vectors.ts          writes the file
//   node test/support/make-record-vectors.ts --check  fails when the file is not what this makes
import { createCipheriv, createHash, createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../vectors/records.json", import.meta.url);

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest();
const hmac = (key: Uint8Array, data: string | Uint8Array) => createHmac("sha256", key).update(data).digest();

/** RFC 5869 §2.2 and §2.3. */
function hkdf(input: { secret: Uint8Array; salt: Uint8Array; info: string; length: number }): Buffer {
  const salt = input.salt.length === 0 ? Buffer.alloc(32) : input.salt;
  const extracted = hmac(salt, input.secret);
  const blocks: Buffer[] = [];
  for (let i = 1; blocks.length * 32 < input.length; i += 1) {
    const previous = blocks.at(-1) ?? Buffer.alloc(0);
    blocks.push(hmac(extracted, Buffer.concat([previous, Buffer.from(input.info), Buffer.from([i])])));
  }
  return Buffer.concat(blocks).subarray(0, input.length);
}

interface Keys {
  key: Buffer;
  iv: Buffer;
}

function sealRecord({ key, iv }: Keys, number: bigint, plaintext: Uint8Array): Buffer {
  const counter = Buffer.alloc(12);
  counter.writeBigUInt64BE(number, 4);
  const nonce = Buffer.from(iv.map((byte, i) => byte ^ (counter[i] ?? 0)));
  const length = plaintext.length + 16;
  const header = Buffer.from([length >> 16, (length >> 8) & 0xff, length & 0xff]);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(header);
  return Buffer.concat([header, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

const fleetKey = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
const otherKey = Buffer.alloc(32, 0xa5);
const dialler = "node_0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const listener = "node_00112233445566778899aabbccddeeff";

const handshakes = [
  { name: "cluster", key: fleetKey, kind: "cluster", timestamp: "1767225600000", seed: 1 },
  { name: "do", key: fleetKey, kind: "do", timestamp: "1767225600000", seed: 1 },
  { name: "another-time", key: fleetKey, kind: "cluster", timestamp: "1767225600001", seed: 1 },
  { name: "other-nonces", key: fleetKey, kind: "cluster", timestamp: "1767225600000", seed: 2 },
  { name: "other-key", key: otherKey, kind: "cluster", timestamp: "1767225600000", seed: 1 },
].map(({ name, key, kind, timestamp, seed }) => {
  const nonce = (use: string) => sha256(`${use} ${seed}`).toString("hex").slice(0, 32);
  const signedNonce = nonce("signed");
  const offer = `records-1; nonce=${nonce("dialler")}`;
  const acceptance = `records-1; nonce=${nonce("listener")}`;
  const transcript = [
    "cellkit-records-1",
    "5",
    "GET",
    "/peer/tunnel",
    dialler,
    listener,
    timestamp,
    signedNonce,
    kind,
    "5",
    offer,
    acceptance,
  ].join("\n");
  const salt = sha256(transcript);
  const block = hkdf({ secret: key, salt, info: "cellkit-records-1 keys", length: 120 });
  const proof = hmac(block.subarray(88), transcript).toString("hex");
  return {
    name,
    fleetKeyHex: key.toString("hex"),
    source: dialler,
    destination: listener,
    timestamp,
    signedNonce,
    kind,
    offer,
    transcript,
    transcriptSha256: salt.toString("hex"),
    diallerKeyHex: block.toString("hex", 0, 32),
    diallerIvHex: block.toString("hex", 32, 44),
    listenerKeyHex: block.toString("hex", 44, 76),
    listenerIvHex: block.toString("hex", 76, 88),
    proofKeyHex: block.toString("hex", 88, 120),
    acceptance: `${acceptance}; proof=${proof}`,
  };
});

/** What a dialler that offers signs as its nonce: 12 bytes, and the first 4 of the key's HMAC over their digits. */
const offeringNonces = [
  { key: fleetKey, seed: 1 },
  { key: fleetKey, seed: 2 },
  { key: otherKey, seed: 1 },
].map(({ key, seed }) => {
  const random = sha256(`offering ${seed}`).toString("hex").slice(0, 24);
  const mark = hmac(key, `cellkit-records-1 offer\n${random}`).toString("hex").slice(0, 8);
  return { fleetKeyHex: key.toString("hex"), random, nonce: random + mark };
});

const streamKeys: Keys = {
  key: Buffer.from(handshakes[0]?.diallerKeyHex ?? "", "hex"),
  iv: Buffer.from(handshakes[0]?.diallerIvHex ?? "", "hex"),
};

interface Stream {
  name: string;
  firstRecord: number;
  /** Plaintexts as UTF-8 text, or a count of bytes that are the low byte of their place. */
  plaintexts: (string | number)[];
}

const bytesOf = (plaintext: string | number): Buffer =>
  typeof plaintext === "string"
    ? Buffer.from(plaintext)
    : Buffer.from(Array.from({ length: plaintext }, (_, i) => i & 0xff));

function streamVector({ name, firstRecord, plaintexts }: Stream) {
  let keys = streamKeys;
  const records = [...plaintexts.map(bytesOf), Buffer.alloc(0)].map((plaintext, i) => {
    const number = firstRecord + i;
    if (i > 0 && number % 2 ** 20 === 0) {
      const block = hkdf({
        secret: keys.key,
        salt: Buffer.alloc(0),
        info: "cellkit-records-1 rekey",
        length: 44,
      });
      keys = { key: block.subarray(0, 32), iv: block.subarray(32) };
    }
    return sealRecord(keys, BigInt(number), plaintext);
  });
  const stream = Buffer.concat(records);
  return {
    name,
    firstRecord,
    keyHex: streamKeys.key.toString("hex"),
    ivHex: streamKeys.iv.toString("hex"),
    plaintexts,
    streamBytes: stream.length,
    streamSha256: sha256(stream).toString("hex"),
    ...(stream.length <= 4_096 ? { streamHex: stream.toString("hex") } : {}),
  };
}

const streams = (
  [
    { name: "nothing", firstRecord: 0, plaintexts: [] },
    { name: "one-byte", firstRecord: 0, plaintexts: ["a"] },
    { name: "three", firstRecord: 0, plaintexts: ["GET / HTTP/1.1\r\n", "Host: cell\r\n\r\n", "żółw ☃"] },
    { name: "largest", firstRecord: 0, plaintexts: [65_536] },
    { name: "joined-or-not", firstRecord: 0, plaintexts: [16_384, 16_385] },
    { name: "sequence-above-32-bits", firstRecord: 2 ** 32 + 5, plaintexts: ["a", "b"] },
    { name: "key-changes", firstRecord: 2 ** 20 - 2, plaintexts: ["a", "b", "c"] },
  ] satisfies Stream[]
).map(streamVector);

const [first = Buffer.alloc(0), second = Buffer.alloc(0), end = Buffer.alloc(0)] = [
  "first",
  "second",
  "",
].map((plaintext, i) => sealRecord(streamKeys, BigInt(i), Buffer.from(plaintext)));
const flipped = Buffer.from(first);
flipped[5] = (flipped[5] ?? 0) ^ 1;
const moved = Buffer.concat([first, sealRecord(streamKeys, 2n, Buffer.from("third")), end]);

const rejected = (
  [
    ["a bit is flipped", [flipped, second, end], "authentication", ""],
    ["a record is dropped", [first, end], "authentication", "first"],
    ["a record is repeated", [first, first, second, end], "authentication", "first"],
    ["records are exchanged", [second, first, end], "authentication", ""],
    ["a later record comes early", [moved], "authentication", "first"],
    ["bytes follow the end", [first, second, end, Buffer.alloc(1)], "after-end", "firstsecond"],
    ["a record is too short", [Buffer.from("00000f", "hex")], "length", ""],
    ["a record is too long", [Buffer.from("010011", "hex")], "length", ""],
    ["there is no end record", [first, second], "truncated", "firstsecond"],
    ["the end record is cut", [first, second, end.subarray(0, 18)], "truncated", "firstsecond"],
    ["there is nothing", [], "truncated", ""],
  ] as const
).map(([name, parts, fault, delivered]) => ({
  name,
  keyHex: streamKeys.key.toString("hex"),
  ivHex: streamKeys.iv.toString("hex"),
  streamHex: Buffer.concat([...parts]).toString("hex"),
  fault,
  delivered,
}));

/** The text of test/vectors/records.json. */
export function recordVectorsText(): string {
  const about =
    "Records between nodes (docs/protocol/records.md). handshakes: inputs to keys and proof. offeringNonces: the signed nonce of one that offers. streams: one direction with the keys that hold at firstRecord (0 unless said), plaintexts as UTF-8 text or as a count of bytes 00 01 .. ff 00 .., an end record after the last. rejected: what must fail, how, and the most that may be delivered before.";
  return `${JSON.stringify({ format: 1, about, handshakes, offeringNonces, streams, rejected }, null, 1)}\n`;
}

if (import.meta.main) {
  const text = recordVectorsText();
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) process.exitCode = 1;
}
