import type { Duplex } from "node:stream";
import { FleetKey } from "../../src/core/fleet-key.ts";
import { deriveRecordKeys } from "../../src/core/record-keys.ts";
import { RecordOpener, RecordSealer } from "../../src/core/record-layer.ts";
import { RecordStream } from "../../src/record-stream.ts";
import { socketPair } from "./socket-pair.ts";

export const testKey = new FleetKey(Buffer.alloc(32, 7));

/** Sealer and opener of both ends of one tunnel. */
export function recordEnds() {
  const keys = deriveRecordKeys({ key: testKey, transcript: "a test" });
  return {
    dialler: { sealer: new RecordSealer(keys.dialler), opener: new RecordOpener(keys.listener) },
    listener: { sealer: new RecordSealer(keys.listener), opener: new RecordOpener(keys.dialler) },
  };
}

/** Both ends of a connection in records. */
export async function recordPair(): Promise<[RecordStream, RecordStream]> {
  const [dialled, accepted] = await socketPair();
  const ends = recordEnds();
  return [quiet(new RecordStream(dialled, ends.dialler)), quiet(new RecordStream(accepted, ends.listener))];
}

/** For a stream whose failure at the end of a test means nothing. */
export function quiet<Stream extends Duplex>(stream: Stream): Stream {
  return stream.on("error", () => undefined);
}
