import type { Readable } from "node:stream";

/**
 * A body as the web has it: read when it is asked for, and cut when it is cancelled, also while a read waits.
 * (`Readable.toWeb` throws outside of any promise when a chunk comes after a cancellation.)
 */
export function webBody(body: Readable): ReadableStream<Uint8Array> {
  // What reads gets the error; an error that nobody reads must not end the process.
  body.on("error", () => undefined);
  const pieces: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        body.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
