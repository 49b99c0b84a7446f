import { expect, it } from "vitest";
import { sentBody } from "../src/sent-body.ts";

const bodyOf = (body: ConstructorParameters<typeof Response>[0]) => new Response(body).body;

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

it("none is none", async () => {
  expect(await sentBody(null)).toEqual({ whole: null });
});

it.each([
  ["text", "hello"],
  ["bytes", new TextEncoder().encode("hello")],
  ["a blob", new Blob(["hello"])],
])("%s is whole", async (_, body) => {
  const sent = await sentBody(bodyOf(body));
  expect("whole" in sent && Buffer.from(sent.whole ?? []).toString()).toBe("hello");
});

it("a megabyte is a stream, with every byte", async () => {
  const text = "x".repeat(1024 * 1024);
  const sent = await sentBody(bodyOf(text));
  expect("stream" in sent && (await textOf(sent.stream)) === text).toBe(true);
});

it("what is not there yet is a stream, from its beginning", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const source = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(Buffer.from("hel")),
    async pull(controller) {
      await promise;
      controller.enqueue(Buffer.from("lo"));
      controller.close();
    },
  });
  const sent = await sentBody(source);
  resolve();
  expect("stream" in sent && (await textOf(sent.stream))).toBe("hello");
});

it("a stream that nobody reads to its end is cancelled", async () => {
  const cancelled = Promise.withResolvers<void>();
  const source = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      controller.enqueue(Buffer.from("more"));
    },
    cancel: () => cancelled.resolve(),
  });
  const sent = await sentBody(source);
  if (!("stream" in sent)) throw new TypeError("it is whole");
  for await (const _ of sent.stream) break;
  await cancelled.promise;
});

it("a body that fails fails the call", async () => {
  const source = new ReadableStream<Uint8Array>({
    start: (controller) => controller.error(new RangeError("no body")),
  });
  await expect(sentBody(source)).rejects.toThrow("no body");
});
