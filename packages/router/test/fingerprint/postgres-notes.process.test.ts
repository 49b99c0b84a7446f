// Notes in PostgreSQL, which has a clock of its own to tell their age by. Starts a server: in the long run alone.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgresLedger } from "@cellkit/ledger/postgres";
import pg from "pg";
import { expect, inject, it } from "vitest";
import { formatFingerprint } from "../../src/fingerprint/fingerprint.ts";
import { openNotes } from "../../src/fingerprint/open-notes.ts";
import { checkRouter, routerOptions } from "../../src/index.ts";
import { openPlace } from "../support/ledger-places.ts";
import { writeTokens } from "../support/router.ts";

it.runIf(inject("size") === "long")(
  "replicas that are gone by the database's clock are compared with nobody, and the latest notes come first",
  async () => {
    const directory = await mkdtemp(join(tmpdir(), "router-notes-"));
    await using place = await openPlace("PostgreSQL", directory);
    if (place === undefined) return;
    const url = String(place.flags[1]);
    await (await openPostgresLedger({ connection: url })).close();
    const notes = await openNotes(url, {});
    const text = formatFingerprint({ version: 1, replica: "x", backends: `sha256:${"ab".repeat(32)}` });
    await notes.write("gone", text);
    await notes.write("lives", text);
    expect((await notes.list()).map(({ replica }) => replica)).toEqual(["lives", "gone"]);
    expect(Math.abs(((await notes.nowMs?.()) ?? 0) - Date.now())).toBeLessThan(60_000);
    const replicas = async () => {
      const files = writeTokens(directory);
      const config = routerOptions.parse({
        backends: "http://127.0.0.1:1",
        clientTokenFile: files.client,
        tokenFile: files.backend,
        ledger: url,
      });
      return (await checkRouter(config, { roundCount: 1 })).find(({ name }) => name === "replicas");
    };
    const age = async (replica: string) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const update =
        "UPDATE cellkit_ledger SET modified_at = CURRENT_TIMESTAMP - INTERVAL '3 minutes' WHERE record_key = $1";
      await client.query(update, [`cellkit-router-${replica}`]);
      await client.end();
    };
    await age("gone");
    const one = await replicas();
    expect(one).toMatchObject({
      verdict: "failed",
      detail: expect.stringMatching(/^lives has another list/),
    });
    expect(one?.detail).not.toContain("gone");
    await age("lives");
    expect(await replicas()).toMatchObject({ verdict: "not-tested" });
    await notes.close();
    await rm(directory, { recursive: true });
  },
);
