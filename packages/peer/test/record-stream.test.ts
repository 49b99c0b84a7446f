import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { RecordStream } from "../src/record-stream.ts";
import { quiet, recordEnds, recordPair } from "./support/records.ts";
import { socketPair } from "./support/socket-pair.ts";

async function failure(stream: Readable): Promise<Error> {
  stream.resume();
  const [error] = await once(stream, "error");
  return error as Error;
}

test("bytes pass both ways, and each end sees the other's end", async () => {
  const [near, far] = await recordPair();
  const sent = randomBytes(3_000_000);
  far.pipe(far);
  near.end(sent);
  expect((await buffer(near)).equals(sent)).toBe(true);
});

test("the two directions end one without the other", async () => {
  const [near, far] = await recordPair();
  near.end("question");
  // Some versions of Node destroy a stream that was read to its end by iteration, and this one is still to be written to.
  expect((await buffer(far.iterator({ destroyOnReturn: false }))).toString()).toBe("question");
  far.end("answer");
  expect((await buffer(near)).toString()).toBe("answer");
});

test("small chunks that wait together become one record", async () => {
  const [dialled, accepted] = await socketPair();
  const near = quiet(new RecordStream(dialled, recordEnds().dialler));
  near.cork();
  for (let i = 0; i < 100; i += 1) near.write("x");
  near.uncork();
  const [wire] = await once(accepted, "data");
  expect((wire as Buffer).length).toBe(100 + 3 + 16);
});

test("bytes that came with the head of the establishment are read first", async () => {
  const [dialled, accepted] = await socketPair();
  const ends = recordEnds();
  const rest = Buffer.concat(ends.dialler.sealer.seal(Buffer.from("early ")));
  const far = quiet(new RecordStream(accepted, { ...ends.listener, rest }));
  quiet(new RecordStream(dialled, ends.dialler)).end("late");
  expect((await buffer(far)).toString()).toBe("early late");
});

test("every split of the wire gives the same bytes", async () => {
  const plain = randomBytes(120);
  for (let at = 1; at < 200; at += 1) {
    const [dialled, accepted] = await socketPair();
    const { dialler, listener } = recordEnds();
    const wire = Buffer.concat([
      ...dialler.sealer.seal(plain.subarray(0, 50)),
      ...dialler.sealer.seal(plain.subarray(50)),
      dialler.sealer.end(),
    ]);
    const cut = Math.min(at, wire.length);
    const far = quiet(new RecordStream(accepted, { ...listener, rest: wire.subarray(0, cut) }));
    dialled.end(wire.subarray(cut));
    expect((await buffer(far)).equals(plain)).toBe(true);
    dialled.destroy();
    far.destroy();
  }
});

test.each(["FIN", "reset"])("a connection cut by a %s is an error, never an end", async (how) => {
  const [dialled, accepted] = await socketPair();
  const { dialler, listener } = recordEnds();
  const far = quiet(new RecordStream(accepted, listener));
  dialled.write(Buffer.concat(dialler.sealer.seal(Buffer.from("half"))));
  await once(far, "data");
  if (how === "FIN") dialled.end();
  else dialled.resetAndDestroy();
  const error = await failure(far);
  expect(error).toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
});

test.each(["end", "error", "close"])(
  "what came in the turn of the connection's %s is read before the loss",
  async (event) => {
    const [, accepted] = await socketPair();
    const { dialler, listener } = recordEnds();
    const far = quiet(new RecordStream(accepted, listener));
    const read: Buffer[] = [];
    far.on("data", (chunk: Buffer) => read.push(chunk));
    accepted.emit("data", Buffer.concat(dialler.sealer.seal(Buffer.from("half"))));
    accepted.emit(event, new RangeError("of the connection"));
    expect(await failure(far)).toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
    expect(Buffer.concat(read).toString()).toBe("half");
  },
);

test("what was opened before a changed record of the same turn is read, and nothing behind it", async () => {
  const [, accepted] = await socketPair();
  const { dialler, listener } = recordEnds();
  const [first, second, third] = ["first ", "second ", "third "].flatMap((piece) =>
    dialler.sealer.seal(Buffer.from(piece)),
  ) as [Buffer, Buffer, Buffer];
  second[8] = (second[8] ?? 0) ^ 1;
  const far = quiet(new RecordStream(accepted, { ...listener, rest: first }));
  const read: Buffer[] = [];
  far.on("data", (chunk: Buffer) => read.push(chunk));
  accepted.emit("data", second);
  accepted.emit("data", third);
  expect(await failure(far)).toMatchObject({ code: "CELLKIT_PEER_RECORD", fault: "authentication" });
  expect(Buffer.concat(read).toString()).toBe("first ");
});

test("a tunnel that fails in a turn holds up no other one", async () => {
  const pairs = await Promise.all(Array.from({ length: 3 }, () => socketPair()));
  const ends = pairs.map(() => recordEnds());
  const streams = pairs.map(([, accepted], i) => {
    const { dialler, listener } = ends[i] ?? recordEnds();
    const rest = Buffer.concat(dialler.sealer.seal(Buffer.from(`of ${i}`)));
    if (i === 1) rest[8] = (rest[8] ?? 0) ^ 1;
    return quiet(new RecordStream(accepted, { ...listener, rest }));
  });
  const read = streams.map(() => "");
  for (const [i, stream] of streams.entries()) {
    stream.on("data", (chunk: Buffer) => {
      read[i] += chunk.toString();
    });
  }
  await until("the last one's bytes", () => read[2] !== "");
  expect(read).toEqual(["of 0", "", "of 2"]);
  expect(streams.map((stream) => stream.destroyed)).toEqual([false, true, false]);
});

test("as much as a turn does not hold is opened at once", async () => {
  const [, accepted] = await socketPair();
  const { dialler, listener } = recordEnds();
  const far = quiet(new RecordStream(accepted, listener));
  const pieces = Array.from({ length: 3 }, () =>
    Buffer.concat(dialler.sealer.seal(Buffer.alloc(8_192, "p"))),
  );
  for (const piece of pieces) accepted.emit("data", piece);
  expect(far.readableLength).toBe(2 * 8_192);
  await until("the rest", () => far.readableLength === 3 * 8_192);
});

test("a changed byte destroys both ends before it is read", async () => {
  const [dialled, accepted] = await socketPair();
  const { dialler, listener } = recordEnds();
  const far = quiet(new RecordStream(accepted, listener));
  const read: Buffer[] = [];
  far.on("data", (chunk: Buffer) => read.push(chunk));
  const [record = Buffer.alloc(0)] = dialler.sealer.seal(Buffer.from("secret"));
  record[8] = (record[8] ?? 0) ^ 1;
  dialled.on("error", () => undefined).resume();
  dialled.write(record);
  const error = await failure(far);
  expect(error).toMatchObject({ code: "CELLKIT_PEER_RECORD", fault: "authentication" });
  expect(read).toEqual([]);
  await until("end", () => dialled.readableEnded || dialled.destroyed);
});

test("a reader that stops stops the writer, at a bounded amount, and nothing is lost", async () => {
  const [near, far] = await recordPair();
  const piece = Buffer.alloc(64 * 1024, "p");
  let sent = 0;
  const send = () => {
    let hasRoom = true;
    while (hasRoom && sent < 100_000_000) {
      hasRoom = near.write(piece);
      sent += piece.length;
    }
  };
  near.on("drain", send);
  send();
  let before = -1;
  await until("stop of the writer", () => {
    const isStill = sent === before;
    before = sent;
    return isStill && near.writableNeedDrain;
  });
  expect(far.readableLength).toBeLessThan(1_000_000);
  expect(sent).toBeLessThan(50_000_000);
  near.off("drain", send);
  near.end();
  expect((await buffer(far)).length).toBe(sent);
});

test("writes after the other end is gone fail, and their callbacks are called", async () => {
  const [near, far] = await recordPair();
  far.destroy();
  near.resume();
  await until("close", () => near.closed);
  const { promise, resolve } = Promise.withResolvers<Error | null | undefined>();
  near.write("late", resolve);
  expect(await promise).toBeInstanceOf(Error);
});
