import { describe, expect, test } from "vitest";
import { FleetKey } from "../../src/core/fleet-key.ts";
import { deriveRecordKeys } from "../../src/core/record-keys.ts";
import {
  maxRecordCount,
  maxRecordPlaintextBytes,
  RecordOpener,
  RecordSealer,
  recordHeaderBytes,
  recordTagBytes,
} from "../../src/core/record-layer.ts";
import { everyCut } from "../support/splits.ts";

const overhead = recordHeaderBytes + recordTagBytes;
const keys = deriveRecordKeys({ key: new FleetKey(Buffer.alloc(32, 7)), transcript: "a test" });
const fault = (name: string) => expect.objectContaining({ code: "CELLKIT_PEER_RECORD", fault: name });

function sealAll(...messages: (string | Uint8Array)[]): Buffer {
  const sealer = new RecordSealer(keys.dialler);
  const sealed = messages.flatMap((message) => sealer.seal(Buffer.from(message)));
  return Buffer.concat([...sealed, sealer.end()]);
}

function openAll(pieces: readonly Uint8Array[]): Buffer {
  const opener = new RecordOpener(keys.dialler);
  const data = pieces.flatMap((piece) => opener.push(piece).data);
  opener.finish();
  return Buffer.concat(data);
}

describe("sealing", () => {
  test.each([
    [0, 0],
    [1, 1],
    [maxRecordPlaintextBytes, 1],
    [maxRecordPlaintextBytes + 1, 2],
    [3 * maxRecordPlaintextBytes, 3],
  ])("%i bytes make %i records", (bytes, count) => {
    const sealed = Buffer.concat(new RecordSealer(keys.dialler).seal(Buffer.alloc(bytes, "x")));
    expect(sealed.length).toBe(bytes + count * overhead);
  });

  test("what was sealed shares no memory with what was given", () => {
    const message = Buffer.from("a message");
    const sealer = new RecordSealer(keys.dialler);
    const sealed = sealer.seal(message);
    message.fill(0);
    expect(openAll([...sealed, sealer.end()]).toString()).toBe("a message");
  });

  test("no plaintext is seen in the stream", () => {
    expect(sealAll("a known secret", Buffer.alloc(20_000, "secret")).includes("secret")).toBe(false);
  });

  test("the same bytes are sealed differently each time", () => {
    const sealer = new RecordSealer(keys.dialler);
    const [one, other] = [
      Buffer.concat(sealer.seal(Buffer.from("a"))),
      Buffer.concat(sealer.seal(Buffer.from("a"))),
    ];
    expect(one.equals(other)).toBe(false);
  });

  test("nothing is sealed after the end", () => {
    const sealer = new RecordSealer(keys.dialler);
    sealer.end();
    expect(() => sealer.seal(Buffer.from("x"))).toThrow(fault("ended"));
    expect(() => sealer.end()).toThrow(fault("ended"));
  });

  test("the record after the last number is refused, at both ends", () => {
    const counters = { firstRecord: maxRecordCount - 1 };
    const sealer = new RecordSealer(keys.dialler, counters);
    const last = Buffer.concat(sealer.seal(Buffer.from("last")));
    expect(() => sealer.end()).toThrow(fault("sequence-limit"));
    const opener = new RecordOpener(keys.dialler, counters);
    expect(Buffer.concat(opener.push(last).data).toString()).toBe("last");
    expect(() => opener.push(last)).toThrow(fault("sequence-limit"));
    expect(() => opener.push(last)).toThrow(fault("failed"));
  });
});

describe("opening", () => {
  test("a stream cut anywhere gives the same", () => {
    const stream = sealAll("", "a", "bc", "a longer message than the others");
    for (const pieces of everyCut(stream)) {
      expect(openAll(pieces).toString()).toBe("abca longer message than the others");
    }
  });

  test("a record larger than any read is put together", () => {
    const message = Buffer.alloc(maxRecordPlaintextBytes, "0123456789");
    const stream = sealAll(message);
    const pieces = Array.from({ length: Math.ceil(stream.length / 1_000) }, (_, i) =>
      stream.subarray(i * 1_000, (i + 1) * 1_000),
    );
    expect(openAll(pieces).equals(message)).toBe(true);
  });

  test("nothing of a record is delivered before its tag was seen", () => {
    const opener = new RecordOpener(keys.dialler);
    const record = Buffer.concat(new RecordSealer(keys.dialler).seal(Buffer.from("a message")));
    expect(opener.push(record.subarray(0, -1)).data).toEqual([]);
    expect(opener.push(record.subarray(-1)).data).toHaveLength(1);
  });

  test("keys of the other direction do not open", () => {
    const opener = new RecordOpener(keys.listener);
    expect(() => opener.push(sealAll("a"))).toThrow(fault("authentication"));
    expect(() => opener.finish()).toThrow(fault("failed"));
  });

  test("the key changes in time, and an end that keeps the old one is found out", () => {
    const sealer = new RecordSealer(keys.dialler, { recordsPerKey: 3 });
    const records = ["a", "b", "c", "d", "e", "f", "g"].map((text) =>
      Buffer.concat(sealer.seal(Buffer.from(text))),
    );
    const stream = Buffer.concat([...records, sealer.end()]);

    const opener = new RecordOpener(keys.dialler, { recordsPerKey: 3 });
    expect(Buffer.concat(opener.push(stream).data).toString()).toBe("abcdefg");
    opener.finish();

    const keepsKey = new RecordOpener(keys.dialler, { recordsPerKey: 1_000 });
    expect(Buffer.concat(keepsKey.push(Buffer.concat(records.slice(0, 3))).data).toString()).toBe("abc");
    expect(() => keepsKey.push(records[3] ?? stream)).toThrow(fault("authentication"));
  });
});
