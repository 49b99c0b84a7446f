// What `cellkit router check` makes of the fingerprints that replicas left beside the ledger.
import { createHash } from "node:crypto";
import { utimes } from "node:fs/promises";
import { join } from "node:path";
import { openPosixLedger } from "@cellkit/ledger";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatFingerprint } from "../../src/fingerprint/fingerprint.ts";
import { openNotes } from "../../src/fingerprint/open-notes.ts";
import { TokenGenerations } from "../../src/fingerprint/token-generation.ts";
import { CheckedPlane } from "../support/checked-plane.ts";
import { tokens } from "../support/router.ts";

let plane: CheckedPlane;
beforeEach(async () => {
  plane = await CheckedPlane.open();
});
afterEach(() => plane.close());

describe("replicas", () => {
  const note = async (replica: string, list: readonly string[]) => {
    const backends = `sha256:${createHash("sha256").update(JSON.stringify(list)).digest("hex")}`;
    const text = formatFingerprint({ version: 1, replica, backends });
    await (await openNotes(plane.place, {})).write(replica, text);
  };

  it("that have a discovery token which this configuration lacks, or the other way round, are told of as that", async () => {
    await plane.makeLedger();
    const ledger = await openPosixLedger({ directory: plane.place });
    const generations = new TokenGenerations(ledger.ledgerId);
    await ledger.close();
    const list = ["round-robin", "", ...plane.origins];
    const backends = `sha256:${createHash("sha256").update(JSON.stringify(list)).digest("hex")}`;
    const noteOf = async (capability: readonly string[]) => {
      const its = {
        client: await generations.of("client", [Buffer.from(tokens.client)]),
        backend: await generations.of("backend", [Buffer.from(tokens.backend)]),
        capability: await generations.of(
          "capability",
          capability.map((text) => Buffer.from(text)),
        ),
      };
      const text = formatFingerprint({ version: 1, replica: "one", backends, tokens: its });
      await (await openNotes(plane.place, {})).write("one", text);
    };
    const told = async (changes = {}) => (await plane.check(changes)).get("replicas")?.detail;
    await noteOf([tokens.capability]);
    expect(await told({ capabilityTokenFile: undefined })).toMatch(
      /^one has a capability token, and this configuration has none, unless/,
    );
    await noteOf([]);
    expect(await told()).toMatch(/^one has no capability token, and this configuration has one, unless/);
    await noteOf(["another-capability-token-of-this-plane"]);
    expect(await told()).toMatch(/^one has another capability token, unless/);
  });

  it("that have the same list pass, and one that has another order is named", async () => {
    await plane.makeLedger();
    await note("one", ["round-robin", "", ...plane.origins]);
    expect((await plane.check()).get("replicas")).toMatchObject({
      verdict: "passed",
      detail: expect.stringMatching(/^1 have/),
    });
    await note("two", ["round-robin", "", ...plane.origins.reverse()]);
    const { verdict, detail } = (await plane.check()).get("replicas") ?? {};
    expect([verdict, detail]).toEqual([
      "failed",
      expect.stringMatching(/^two has another list of dispatchers, unless/),
    ]);
  });
});

describe("replicas that are gone", () => {
  it("are a warning with their date where the store has no clock to ask", async () => {
    await plane.makeLedger();
    const notes = await openNotes(plane.place, {});
    const backends = `sha256:${"ab".repeat(32)}`;
    await notes.write("old", formatFingerprint({ version: 1, replica: "old", backends }));
    const when = new Date("2026-01-02T03:04:05.000Z");
    await utimes(join(plane.place, "cellkit-router", "cellkit-router-old.fingerprint"), when, when);
    expect((await plane.check()).get("replicas")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/^old has another list of dispatchers; .*2026-01-02T03:04:05\.000Z/),
    });
  });
});

describe("a fingerprint of a time to come, as after a clock was set back", () => {
  const list = () => ["round-robin", "", ...plane.origins];
  const write = async (replica: string, its: readonly string[], writtenMs: number) => {
    const backends = `sha256:${createHash("sha256").update(JSON.stringify(its)).digest("hex")}`;
    await (await openNotes(plane.place, {})).write(
      replica,
      formatFingerprint({ version: 1, replica, backends }),
    );
    const when = new Date(writtenMs);
    await utimes(join(plane.place, "cellkit-router", `cellkit-router-${replica}.fingerprint`), when, when);
  };
  const later = Date.UTC(2099, 0);

  it("hides no replica that runs with another list", async () => {
    await plane.makeLedger();
    await write("early", list(), later);
    await write("live", list().reverse(), Date.now());
    expect((await plane.check()).get("replicas")).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/^live has another list of dispatchers, .*early is of 2099-01-01T/),
    });
  });

  it("is told, and is no failure by itself", async () => {
    await plane.makeLedger();
    await write("early", list(), later);
    await write("live", list(), Date.now());
    expect((await plane.check()).get("replicas")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/^2 have the same list.*early is of 2099-01-01T/),
    });
    await write("early", list().reverse(), later);
    expect((await plane.check()).get("replicas")).toMatchObject({
      verdict: "warning",
      detail: expect.stringMatching(/^early has another list/),
    });
    // Two of that time say that it is the store's.
    await write("live", list(), later);
    expect((await plane.check()).get("replicas")?.verdict).toBe("failed");
  });
});

it("a replica on a ledger whose place another one has taken is told as that, and not by its tokens", async () => {
  await plane.makeLedger();
  const backends = `sha256:${createHash("sha256")
    .update(JSON.stringify(["round-robin", "", ...plane.origins]))
    .digest("hex")}`;
  const its = { client: "0001", backend: "0002", capability: "0003" };
  const text = formatFingerprint({ version: 1, replica: "one", backends, ledger: "before", tokens: its });
  await (await openNotes(plane.place, {})).write("one", text);
  expect((await plane.check()).get("replicas")).toMatchObject({
    verdict: "failed",
    detail: expect.stringMatching(/^one has another ledger: [^;]*, unless/),
  });
});
