// What a check of a router looks at: token files, a place for a ledger, and two stand-ins for dispatchers.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPosixLedger } from "@cellkit/ledger";
import { dispatcher, type ScriptedDispatcher } from "@cellkit/testing";
import { type CheckResult, checkRouter, routerOptions } from "../../src/index.ts";
import { tokens, writeTokens } from "./router.ts";

/** One plane; close it. */
export class CheckedPlane {
  readonly directory: string;
  readonly files: ReturnType<typeof writeTokens>;
  nodes: ScriptedDispatcher[];

  private constructor(directory: string, nodes: ScriptedDispatcher[]) {
    this.directory = directory;
    this.files = writeTokens(directory);
    this.nodes = nodes;
  }

  static async open(): Promise<CheckedPlane> {
    const directory = await mkdtemp(join(tmpdir(), "cellkit-router-check-"));
    const start = (name: string) => dispatcher({ token: tokens.backend, node: { name } });
    return new CheckedPlane(directory, await Promise.all(["node-a", "node-b"].map(start)));
  }

  get origins(): string[] {
    return this.nodes.map(({ origin }) => origin);
  }

  /** The directory of the ledger. */
  get place(): string {
    return join(this.directory, "ledger");
  }

  /** Checks by name, in the order in which they were made. */
  async check(changes: Record<string, unknown> = {}): Promise<Map<string, CheckResult>> {
    const config = routerOptions.parse({
      backends: this.origins.join(","),
      clientTokenFile: this.files.client,
      tokenFile: this.files.backend,
      capabilityTokenFile: this.files.capability,
      ledger: this.place,
      ...changes,
    });
    const found = await checkRouter(config, { roundCount: 3 });
    return new Map(found.map((result) => [result.name, result]));
  }

  /** Makes the ledger, with a record for each owner. */
  async makeLedger(owners: readonly string[] = this.origins, capacity = 100_000): Promise<void> {
    await using ledger = await openPosixLedger({ directory: this.place, capacity });
    for (const [index, owner] of owners.entries())
      await ledger.claim(`run-${index}`, "{}", async () => owner);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((each) => each.close()));
    await rm(this.directory, { recursive: true });
  }
}
