import { Readable } from "node:stream";
import { FormData } from "undici";
import { describe, expect, inject, it } from "vitest";
import type { CallOptions } from "../src/options.ts";
import { alwaysFirst, ask, failure, fleetOf, raw } from "./support/fleet.ts";
import { holdTimers } from "./support/held-timers.ts";
import { refusal, startNode, startRawNode, until } from "./support/node-server.ts";

/** Chunks one by one; counts what was pulled. */
function source(chunks: readonly string[]): { body: Readable; pulled(): number; closed(): boolean } {
  let pulled = 0;
  let closed = false;
  async function* generate(): AsyncGenerator<Buffer> {
    try {
      for (const chunk of chunks) {
        pulled += 1;
        yield Buffer.from(chunk);
      }
    } finally {
      closed = true;
    }
  }
  return { body: generate() as unknown as Readable, pulled: () => pulled, closed: () => closed };
}

describe("a body", () => {
  const replayable: [string, () => unknown, string][] = [
    ["string", () => "text ü", "text ü"],
    ["Buffer", () => Buffer.from("bytes"), "bytes"],
    ["typed array", () => new Uint8Array([104, 105]), "hi"],
    ["ArrayBuffer", () => new TextEncoder().encode("buffer").buffer, "buffer"],
    ["Blob", () => new Blob(["blob"]), "blob"],
    ["URLSearchParams", () => new URLSearchParams({ a: "1", b: "2" }), "a=1&b=2"],
  ];
  it.each(replayable)("of kind %s is sent again whole", async (_kind, make, text) => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    await ask(fleet, { method: "POST", body: make() as string });
    expect(b.seen.map(({ body }) => body)).toEqual([text]);
  });

  it("of kind FormData is sent again whole", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const form = new FormData();
    form.set("name", "value");
    await ask(fleet, { method: "POST", body: form });
    expect(b.seen[0]?.headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/);
    expect(b.seen[0]?.body).toContain('name="name"\r\n\r\nvalue');
  });

  it("H23 that can be read once is replayed from its head start; the source is pulled once", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const chunks = Array.from({ length: 40 }, (_, index) => String(index % 10).repeat(10_000));
    const { body, pulled, closed } = source(chunks);
    const waitMs = 21_301;
    const pauses = holdTimers(waitMs);
    const wait: CallOptions = { bodyHeadStart: { waitMs } };
    const asking = ask(fleet, { method: "POST", body, fleet: wait });
    // The refusal ends the first pause; the test ends the second, which the body of an answer needs.
    await until(() => pauses.length === 2, "the second pause");
    expect(pulled()).toBe(1);
    pauses[1]?.();
    const answer = await asking;
    expect(answer).toMatchObject({ text: "b", classes: ["refused", "answered"] });
    expect(b.seen[0]?.body).toBe(chunks.join(""));
    expect(pulled()).toBe(40);
    expect(closed()).toBe(true);
  });

  it("H24 that can be read once and is used up: the 503 is the answer, and the attempt says why", async () => {
    // Refuses only when 200 kB are in: far beyond what is kept.
    let received = 0;
    await using a = await startRawNode((socket) => {
      socket.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (received > 200_000) socket.end(refusal);
      });
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const { body } = source(Array.from({ length: 40 }, () => "x".repeat(10_000)));
    const answer = await ask(fleet, { method: "POST", body });
    expect(answer).toMatchObject({ status: 503, classes: ["refused"] });
    expect(answer.attempts[0]?.error).toMatchObject({ code: "CELLKIT_CLIENT_BODY" });
    expect(b.seen).toEqual([]);
  });

  it("that can be read once, used up, with no response: BodyNotReplayableError", async () => {
    let received = 0;
    await using a = await startRawNode((socket) => {
      socket.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (received > 200_000) socket.destroy();
      });
    });
    await using fleet = fleetOf([a]);
    const { body } = source(Array.from({ length: 40 }, () => "x".repeat(10_000)));
    expect(await failure(ask(fleet, { method: "PUT", body }))).toMatchObject({ code: "CELLKIT_CLIENT_BODY" });
  });

  it("whose source throws fails the call with that error, and blames no node", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a], { outlier: { consecutive: 1, maxPercent: 100 } });
    const broken = new RangeError("the source broke");
    const body = Readable.from(
      (async function* () {
        yield "a";
        throw broken;
      })(),
    );
    expect(await failure(ask(fleet, { method: "PUT", body }))).toBe(broken);
    expect(fleet.nodes[0]?.state).toBe("admitted");
  });

  it("H25 from a replay factory is made anew for each attempt, and the former is destroyed", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const made: Readable[] = [];
    const replay = async () => {
      const body = Readable.from([`body ${made.length + 1}`]);
      made.push(body);
      return body as never;
    };
    expect(await ask(fleet, { method: "POST", fleet: { replay } })).toMatchObject({ text: "b" });
    expect(b.seen[0]?.body).toBe("body 2");
    expect(made.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  });

  it("H26 of 8 MB meets a draining node again and again, with a busy loop: never a reset", async () => {
    const rounds = inject("size") === "long" ? 60 : 12;
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    // Never set aside, so that A is met in each round.
    const endpoints = [{ url: a.url, loadBalanced: true }, { url: b.url }];
    await using fleet = fleetOf([], { endpoints, internals: alwaysFirst, retry: { budget: false } });
    const body = Buffer.alloc(8 * 1024 * 1024, 120);
    const busy = setInterval(() => {
      const endMs = performance.now() + 4;
      while (performance.now() < endMs);
    }, 8);
    const texts = [];
    try {
      for (let round = 0; round < rounds; round += 1) {
        texts.push((await ask(fleet, { method: "POST", body })).text);
      }
    } finally {
      clearInterval(busy);
    }
    expect(texts).toEqual(Array.from({ length: rounds }, () => "b"));
    expect(
      b.seen.every(({ bodyBytes, headers }) => bodyBytes === body.length && headers["content-length"]),
    ).toBe(true);
    expect(a.refusedCount).toBe(rounds);
  });

  it("H27 broken off half-way is ambiguous; a small declared one may be called not sent", async () => {
    await using a = await startRawNode((socket) => socket.destroy());
    await using b = await startNode("b");
    // The second half is there when the first attempt is over: at its end, or with the connection to B.
    const upload = (
      more: Promise<void>,
    ): { method: string; body: Readable; headers: Record<string, string> } => ({
      method: "POST",
      body: Readable.from(
        (async function* () {
          yield Buffer.alloc(1_000);
          await more;
          yield Buffer.alloc(1_000);
        })(),
      ),
      headers: { "content-length": "2000" },
    });
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const over = Promise.withResolvers<void>();
    expect(await failure(ask(fleet, upload(over.promise)))).toMatchObject({
      code: "CELLKIT_CLIENT_AMBIGUOUS",
    });
    over.resolve();
    const fleetOptions = { incompleteUploadSafeBelowBytes: 1_048_576 };
    const atB = until(() => b.sockets.size > 0, "the connection to B");
    expect(await ask(fleet, { ...upload(atB), fleet: fleetOptions })).toMatchObject({
      text: "b",
      classes: ["not-sent", "answered"],
    });
    expect(b.seen[0]?.bodyBytes).toBe(2_000);
  });

  it("that is not wanted any more is let go: an early answer closes the source", async () => {
    await using a = await startRawNode((socket) => socket.end(raw("413 Too Large", ["connection: close"])));
    await using fleet = fleetOf([a]);
    let closed = false;
    const body = (async function* () {
      try {
        for (;;) {
          yield Buffer.alloc(10_000);
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      } finally {
        closed = true;
      }
    })() as unknown as Readable;
    expect((await ask(fleet, { method: "POST", body })).status).toBe(413);
    await until(() => closed, "the source's end");
  });
});
