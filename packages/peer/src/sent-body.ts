// The body of a call as it is put into a tunnel: whole where it can be, since the cell's owner may change meanwhile, and only
// a whole body can be given to the next one.

/** Longer bodies are streamed; nodes keep whole what is shorter. */
const wholeBytes = 1024 * 1024;

/** A body. What is streamed can be sent once. */
export type SentBody = { readonly whole: Uint8Array | null } | { readonly stream: AsyncIterable<Uint8Array> };

/** Takes what is there at once: all of it, for a body that was text, bytes or a form; of any other, the beginning. */
export async function sentBody(body: ReadableStream<Uint8Array> | null): Promise<SentBody> {
  if (body === null) return { whole: null };
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < wholeBytes) {
    const next = reader.read();
    const now = await Promise.race([next, afterMicrotasks()]);
    if (now === undefined) return { stream: goOn(pieces, next, reader) };
    if (now.done) return { whole: Buffer.concat(pieces) };
    pieces.push(now.value);
    bytes += now.value.length;
  }
  return { stream: goOn(pieces, reader.read(), reader) };
}

async function* goOn(
  pieces: readonly Uint8Array[],
  next: ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let isWhole = false;
  try {
    yield* pieces;
    let piece = await next;
    while (!piece.done) {
      yield piece.value;
      piece = await reader.read();
    }
    isWhole = true;
  } finally {
    // Nobody reads on: whoever makes the body hears of it.
    if (!isWhole) reader.cancel().catch(() => undefined);
  }
}

function afterMicrotasks(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined));
}
