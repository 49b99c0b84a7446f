// A qualification with real processes: of sound places, and of places with a fault that it must find.
import { mkdir, readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { openLedger } from "../../src/open-ledger.ts";
import { localPlace } from "../../src/qualification/agent-connection.ts";
import { listenForAgents, peerPlace } from "../../src/qualification/agent-listener.ts";
import type { Outcome } from "../../src/qualification/check.ts";
import { claimsApart, claimsRace, claimsSeen, openEverywhere } from "../../src/qualification/claim-checks.ts";
import { processDeath, replicaRestart } from "../../src/qualification/death-checks.ts";
import { fullDisk } from "../../src/qualification/fill-check.ts";
import {
  lockExcludes,
  lockFreedByDeath,
  lockKeptByFrozen,
  lockOrders,
} from "../../src/qualification/lock-checks.ts";
import { qualifyLedger } from "../../src/qualification/qualify-ledger.ts";
import { agentCommand, scratch, smallVolume, stageAt } from "../support/qualification.ts";

const secret = "s".repeat(32);
/** Of a whole qualification: it starts many processes, one after the other, while other work may hold the processors. */
const TIME_LIMIT_MS = 900_000;

it(
  "a sound directory, seen from here and over TCP, is qualified; the live ledger beside it is as it was",
  async () => {
    await using place = await scratch();
    const url = `${place.path}/ownership`;
    const live = await openLedger(url);
    await live.claim("run-1", "body", async () => "http://owner");
    await mkdir(`${url}/cellkit-qualify-0123456789ab`);
    const before = (await readdir(url)).sort();
    await using listener = await listenForAgents({
      host: "127.0.0.1",
      port: 0,
      secret,
      agent: agentCommand(url),
    });
    const begun: string[] = [];
    const found = await qualifyLedger(url, {
      places: [
        localPlace(agentCommand(url)),
        peerPlace({ host: listener.host, port: listener.port, secret }),
      ],
      agentCount: 2,
      onBegin: (name) => begun.push(name),
    });
    expect(found.checks.filter(({ required, result }) => required && result !== "passed")).toEqual([]);
    expect(found.verdict).toBe("qualified");
    expect(found.checks.map(({ name }) => name)).toEqual(expect.arrayContaining(begun));
    expect(begun).toContain("full-disk");
    expect(found.checks.find(({ name }) => name === "power-loss")).toMatchObject({
      result: "not-tested",
      required: false,
      detail: expect.stringContaining("laptop"),
    });
    // Both are this machine, whatever their addresses.
    expect(found.checks.find(({ name }) => name === "several-machines")?.detail).toMatch(
      /one and the same machine/,
    );
    expect(found.advice.join()).toContain("cellkit-qualify-0123456789ab is of another qualification");
    expect(found.advice.join()).toContain("only with --peer on another machine");
    expect(found.checks.find(({ name }) => name === "file-system")?.detail).toMatch(/; mounted at \//);
    expect(await live.count()).toBe(1);
    await live.close();
    expect((await readdir(url)).sort()).toEqual(before);
  },
  TIME_LIMIT_MS,
);

/** Two that run for some milliseconds each are not always at it together on a machine that has more to do. */
const untilTogether = (check: () => Promise<Outcome>) => expect.poll(check, { timeout: 60_000 });

describe("what is wrong is found", () => {
  it("a lock that does not exclude", async () => {
    await using place = await scratch();
    await using at = await stageAt(place.path, "lock", 2);
    for (const check of [lockExcludes, lockFreedByDeath, lockKeptByFrozen])
      expect(await check(at.stage), check.name).toMatchObject({ result: "failed" });
    await untilTogether(() => lockOrders(at.stage)).toMatchObject({ result: "failed" });
  });

  it("a ledger whose claims exclude nobody", async () => {
    await using place = await scratch();
    await using at = await stageAt(place.path, "unlocked", 2);
    expect(await openEverywhere(at.stage)).toMatchObject({ result: "passed" });
    await untilTogether(() => claimsRace(at.stage)).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/2 processes were told that .* is new and theirs/),
    });
  });

  it("a ledger that each process has for itself", async () => {
    await using place = await scratch();
    await using at = await stageAt(place.path, "memory", 2);
    for (const check of [openEverywhere, claimsRace, claimsApart, claimsSeen, replicaRestart])
      expect(await check(at.stage), check.name).toMatchObject({ result: "failed" });
  });

  it("a ledger that acknowledges what it never wrote", async () => {
    await using place = await scratch();
    await using at = await stageAt(place.path, "forget", 2);
    await openEverywhere(at.stage);
    expect(await processDeath(at.stage)).toMatchObject({
      result: "failed",
      detail: expect.stringContaining("acknowledged"),
    });
  });

  it("a peer with a directory of its own behind the same path", async () => {
    await using here = await scratch();
    await using there = await scratch();
    await using listener = await listenForAgents({
      host: "127.0.0.1",
      port: 0,
      secret,
      agent: agentCommand(there.path),
    });
    const found = await qualifyLedger(here.path, {
      places: [localPlace(agentCommand(here.path)), peerPlace({ ...listener, secret })],
      agentCount: 2,
    });
    expect(found).toMatchObject({ verdict: "violated" });
    expect(found.checks[0]).toMatchObject({ name: "same-place", result: "failed" });
    expect(await readdir(here.path)).toEqual([]);
    expect(await readdir(there.path)).toEqual([]);
  });

  it("a file system in memory, and nothing else is tried on it", async () => {
    await using place = await scratch("/dev/shm");
    const found = await qualifyLedger(place.path, {
      places: [localPlace(agentCommand(place.path))],
      agentCount: 2,
    });
    expect(found.verdict).toBe("violated");
    expect(found.checks.map(({ name }) => name)).not.toContain("claims-race");
    expect(found.checks.find(({ result }) => result === "failed")).toMatchObject({
      name: "file-system",
      detail: expect.stringContaining("tmpfs"),
    });
  });
});

describe("a full disk", () => {
  it("refuses claims, loses none, and takes them when there is room (needs: mkfs.ext4, mount)", async ({
    skip,
  }) => {
    await using volume = await smallVolume(8 * 1_048_576);
    if (volume === undefined) return skip("no file system could be made in a file: run it as root");
    await using at = await stageAt(volume.path, "none", 2);
    await openEverywhere(at.stage);
    expect(await fullDisk(volume.path, 16 * 1_048_576)(at.stage)).toMatchObject({ result: "passed" });
  });

  it("is tried only when it was asked for, and only on a small one", async () => {
    await using place = await scratch();
    await using at = await stageAt(place.path, "none", 1);
    for (const [limitBytes, reason] of [
      [undefined, /not asked for/],
      [4_096, /there is room for/],
    ] as const)
      expect(await fullDisk(place.path, limitBytes)(at.stage)).toMatchObject({
        result: "not-tested",
        detail: expect.stringMatching(reason),
      });
  });
});

it.each([
  ["a bucket of an unknown kind", "gs://cells", "CELLKIT_LEDGER_OPTION"],
  ["a directory that is not there", "/proc/none", "CELLKIT_LEDGER_UNAVAILABLE"],
])("%s is told at once, before any process starts", async (_, url, code) => {
  const places = [localPlace({ command: "/nonexistent", args: [] })] as const;
  await expect(qualifyLedger(url, { places })).rejects.toMatchObject({ code });
});

describe("agents", () => {
  it("one that cannot be started, or does not speak as one, ends a qualification and leaves nothing", async () => {
    await using place = await scratch();
    for (const args of [
      ["-e", "process.exit(3)"],
      ["-e", "console.log('hello'); setTimeout(() => {}, 60000)"],
    ])
      await expect(
        qualifyLedger(place.path, { places: [localPlace({ command: process.execPath, args })] }),
      ).rejects.toMatchObject({ code: "CELLKIT_LEDGER_AGENT" });
    expect(await readdir(place.path)).toEqual([]);
  });

  it("are ended by the signal, and the probe is removed", async () => {
    await using place = await scratch();
    const stop = new AbortController();
    const reason = new Error("enough");
    await expect(
      qualifyLedger(place.path, {
        places: [localPlace(agentCommand(place.path))],
        agentCount: 2,
        signal: stop.signal,
        onBegin: (name) => {
          if (name === "fsync") stop.abort(reason);
        },
      }),
    ).rejects.toBe(reason);
    expect(await readdir(place.path)).toEqual([]);
  });
});
