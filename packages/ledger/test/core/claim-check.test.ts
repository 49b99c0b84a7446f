import { describe, expect, it } from "vitest";
import {
  answerExisting,
  callChooseOwner,
  checkBody,
  checkId,
  checkOwner,
} from "../../src/core/claim-check.ts";
import type { Owner } from "../../src/ledger.ts";

const OWNER = "CELLKIT_LEDGER_OWNER";
const OPTION = "CELLKIT_LEDGER_OPTION";

it("an id has 1 to 4,096 bytes", () => {
  for (const id of ["x", "i".repeat(4_096), "\u00e4".repeat(2_048)]) expect(() => checkId(id)).not.toThrow();
  for (const [id, message] of [
    ["", "an id has 1 to 4096 bytes, not 0"],
    ["i".repeat(4_097), "not 4097"],
    ["\u00e4".repeat(2_049), "not 4098"],
  ] as const)
    expect(() => checkId(id)).toThrow(
      expect.objectContaining({ code: OPTION, message: expect.stringContaining(message) }),
    );
});

it.each<[unknown, RegExp]>([
  [Buffer.from("id"), /is a text, not Uint8Array/],
  [5, /not number/],
  [undefined, /not undefined/],
  [null, /not null/],
  ["\ud800", /half of a surrogate pair/],
  ["a\udc00b", /half of a surrogate pair/],
])("an id that is %j is refused", (id, message) => {
  expect(() => checkId(id as string)).toThrow(
    expect.objectContaining({ code: OPTION, message: expect.stringMatching(message) }),
  );
});

it("a body is bytes, or a text that has bytes", () => {
  for (const body of ["", "\ud83d\ude00", new Uint8Array(1), Buffer.alloc(0)])
    expect(() => checkBody(body)).not.toThrow();
  for (const [body, message] of [
    ["\ud800", /half of a surrogate pair/],
    [new Uint16Array(1), /not Uint16Array/],
    [[1], /not Array/],
    [undefined, /not undefined/],
  ] as const)
    expect(() => checkBody(body as unknown as string)).toThrow(
      expect.objectContaining({ code: OPTION, message: expect.stringMatching(message) }),
    );
});

it("an owner to be restored has an origin, and its record fits", () => {
  const backend = "http://n";
  expect(() => checkOwner({ backend, bodyHash: "anything" })).not.toThrow();
  for (const owner of [
    { backend: "https://n", bodyHash: "h" },
    { backend, bodyHash: "h".repeat(4_096) },
    { backend, bodyHash: "" },
    { backend, bodyHash: "a\0b" },
    { backend, bodyHash: "\ud800" },
    { backend } as Owner,
    { backend: 5, bodyHash: "h" } as unknown as Owner,
    undefined as unknown as Owner,
  ])
    expect(() => checkOwner(owner)).toThrow(expect.objectContaining({ code: OPTION }));
});

it("a recorded id is existing for the same bytes and a conflict for others", () => {
  const owner = { backend: "http://n", bodyHash: "blake3:00" };
  expect(answerExisting(owner, "blake3:00")).toEqual({ kind: "existing", owner });
  expect(answerExisting(owner, "blake3:01")).toEqual({ kind: "conflict" });
});

describe("choosing an owner", () => {
  it("answers the origin that was chosen", async () => {
    expect(await callChooseOwner(async () => "http://n")).toBe("http://n");
    const { signal } = new AbortController();
    expect(await callChooseOwner(async () => "http://n", signal)).toBe("http://n");
  });

  it.each([
    ["an origin with a path", async () => "http://n/x", /more than a scheme/],
    ["no text", async () => 5 as unknown as string, /is no text/],
  ])("refuses %s", async (_, choose, message) => {
    await expect(callChooseOwner(choose)).rejects.toMatchObject({
      code: OWNER,
      message: expect.stringMatching(message),
    });
  });

  it("that is no function is a mistake in the program, and no claim to be made again", async () => {
    const choose = "http://n" as unknown as () => Promise<string>;
    await expect(callChooseOwner(choose)).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
  });

  it.each([undefined, new AbortController().signal])("keeps the cause of a failure", async (signal) => {
    const cause = new TypeError("no backend");
    const rejecting = callChooseOwner(() => Promise.reject(cause), signal);
    await expect(rejecting).rejects.toMatchObject({ code: OWNER, cause });
    const throwing = callChooseOwner(() => {
      throw cause;
    }, signal);
    await expect(throwing).rejects.toMatchObject({ code: OWNER, cause });
  });

  it("is not begun under an aborted signal", async () => {
    let callCount = 0;
    const choose = async () => {
      callCount++;
      return "http://n";
    };
    await expect(callChooseOwner(choose, AbortSignal.abort("gone"))).rejects.toBe("gone");
    expect(callCount).toBe(0);
  });

  it("is no longer waited for when the signal is aborted, and what it does later concerns nobody", async () => {
    const abort = new AbortController();
    const chosen = Promise.withResolvers<string>();
    const waiting = callChooseOwner(() => chosen.promise, abort.signal);
    abort.abort("gone");
    await expect(waiting).rejects.toBe("gone");
    chosen.reject(new TypeError("too late"));
    await new Promise((done) => setImmediate(done));
  });

  it("that aborts the signal itself ends with its reason", async () => {
    const abort = new AbortController();
    const choose = async () => {
      abort.abort("gone");
      throw new TypeError("also");
    };
    await expect(callChooseOwner(choose, abort.signal)).rejects.toBe("gone");
  });
});
