import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { Inbox } from "../../src/core/socket-inbox.ts";
import { type QueuePolicy, SendQueue } from "../../src/core/socket-queue.ts";

const policy: QueuePolicy = { maxMessages: 3, maxBytes: 10, maxAgeMs: 1_000, overflow: "throw" };

function queue(changes: Partial<QueuePolicy> = {}): SendQueue<string> {
  return new SendQueue({ ...policy, ...changes });
}

function drain(from: SendQueue<string>): string[] {
  return from.clear().map(({ data }) => data);
}

describe("the send queue", () => {
  it("keeps the order", () => {
    const waiting = queue();
    for (const data of ["a", "b", "c"]) waiting.push(data, 1, 0);
    expect([waiting.shift()?.data, ...drain(waiting)]).toEqual(["a", "b", "c"]);
    expect([waiting.length, waiting.sizeBytes, waiting.shift()]).toEqual([0, 0, undefined]);
  });

  it("is full at its number of messages and at its bytes", () => {
    const many = queue();
    for (const data of ["a", "b", "c"]) many.push(data, 1, 0);
    expect(many.push("d", 1, 0)).toEqual({ kind: "full" });
    const large = queue();
    large.push("a", 6, 0);
    expect(large.push("b", 5, 0)).toEqual({ kind: "full" });
    expect(large.push("b", 4, 0)).toEqual({ kind: "queued", dropped: [] });
  });

  it("drops as many of the oldest as the new one needs", () => {
    const waiting = queue({ overflow: "drop-oldest" });
    for (const data of ["a", "b", "c"]) waiting.push(data, 3, 0);
    expect(waiting.push("d", 7, 0)).toMatchObject({
      kind: "queued",
      dropped: [{ data: "a" }, { data: "b" }],
    });
    expect(drain(waiting)).toEqual(["c", "d"]);
  });

  it("drops the new one, when told so or when it could never fit", () => {
    const newest = queue({ overflow: "drop-newest" });
    for (const data of ["a", "b", "c"]) newest.push(data, 1, 0);
    expect(newest.push("d", 1, 0)).toMatchObject({ kind: "queued", dropped: [{ data: "d" }] });
    const oldest = queue({ overflow: "drop-oldest" });
    oldest.push("a", 1, 0);
    expect(oldest.push("b", 11, 0)).toMatchObject({ kind: "queued", dropped: [{ data: "b" }] });
    expect(drain(oldest)).toEqual(["a"]);
    const none = queue({ overflow: "drop-oldest", maxMessages: 0 });
    expect(none.push("a", 1, 0)).toMatchObject({ kind: "queued", dropped: [{ data: "a" }] });
  });

  it("gives back what is too old", () => {
    const waiting = queue();
    waiting.push("a", 1, 0);
    waiting.push("b", 1, 500);
    expect(waiting.expiresAtMs).toBe(1_000);
    expect(waiting.expire(999)).toEqual([]);
    expect(waiting.expire(1_000)).toMatchObject([{ data: "a" }]);
    expect(waiting.expiresAtMs).toBe(1_500);
  });

  it("accounts for every message once and stays within its bounds, whatever happens", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("push"), sizeBytes: fc.nat(12) }),
      fc.record({ kind: fc.constant("shift"), sizeBytes: fc.constant(0) }),
      fc.record({ kind: fc.constant("expire"), sizeBytes: fc.constant(0) }),
    );
    const overflow = fc.constantFrom("throw" as const, "drop-oldest" as const, "drop-newest" as const);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), overflow, (steps, policyOverflow) => {
        const waiting = queue({ overflow: policyOverflow, maxAgeMs: 5 });
        const gone: number[] = [];
        const sent: number[] = [];
        let pushed = 0;
        const numbered = waiting as unknown as SendQueue<number>;
        steps.forEach(({ kind, sizeBytes }, nowMs) => {
          if (kind === "shift") {
            const message = numbered.shift();
            if (message !== undefined) sent.push(message.data);
          } else if (kind === "expire") gone.push(...numbered.expire(nowMs).map(({ data }) => data));
          else {
            const result = numbered.push(pushed, sizeBytes, nowMs);
            if (result.kind === "queued") {
              gone.push(...result.dropped.map(({ data }) => data));
              pushed += 1;
            }
          }
          expect(waiting.length).toBeLessThanOrEqual(policy.maxMessages);
          expect(waiting.sizeBytes).toBeLessThanOrEqual(policy.maxBytes);
        });
        const left = numbered.clear().map(({ data }) => data);
        expect(sent).toEqual(sent.toSorted((a, b) => a - b));
        expect([...sent, ...gone, ...left].toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: pushed }, (_, n) => n),
        );
      }),
      { seed: inject("seed") },
    );
  });
});

describe("the inbox", () => {
  it("is full at a bound, until half of it is free", () => {
    const inbox = new Inbox<number>({ maxMessages: 4, maxBytes: 100 });
    for (let n = 0; n < 4; n += 1) inbox.push(n, 1);
    expect(inbox.full).toBe(true);
    inbox.shift();
    expect(inbox.full).toBe(true);
    inbox.shift();
    expect(inbox.full).toBe(false);
  });

  it("is full by bytes", () => {
    const inbox = new Inbox<number>({ maxMessages: 100, maxBytes: 10 });
    inbox.push(0, 10);
    expect(inbox.full).toBe(true);
    expect(inbox.shift()).toMatchObject({ data: 0 });
    expect(inbox.full).toBe(false);
  });

  it("gives everything once, in order, and nothing after the end", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (steps) => {
        const inbox = new Inbox<number>({ maxMessages: 8, maxBytes: 1_000 });
        const got: number[] = [];
        let pushed = 0;
        for (const push of steps) {
          const message = push ? undefined : inbox.shift();
          if (push) inbox.push(pushed++, 1);
          else if (message !== undefined) got.push(message.data);
        }
        for (let message = inbox.shift(); message !== undefined; message = inbox.shift())
          got.push(message.data);
        expect(got).toEqual(Array.from({ length: pushed }, (_, n) => n));
        expect([inbox.length, inbox.sizeBytes, inbox.full]).toEqual([0, 0, false]);
      }),
      { seed: inject("seed") },
    );
  });

  it("is empty after clear", () => {
    const inbox = new Inbox<number>({ maxMessages: 1, maxBytes: 1 });
    inbox.push(1, 1);
    inbox.clear();
    expect([inbox.length, inbox.sizeBytes, inbox.full]).toEqual([0, 0, false]);
  });
});
