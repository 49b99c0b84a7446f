// Reading request bodies that may be large, without keeping them.

/** The length of a body in bytes, or undefined as soon as it is known to exceed `limitBytes`. */
export async function bodyLength(request: Request, limitBytes: number): Promise<number | undefined> {
  if (request.body === null) return 0;
  let length = 0;
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    length += chunk.byteLength;
    if (length > limitBytes) return undefined;
  }
  return length;
}
