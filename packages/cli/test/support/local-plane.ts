// A plane on this machine that `cellkit qualify executions` tries: the real router, stand-ins for dispatchers, and commands that are functions.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type ExecutionRequestInput, RouterClient } from "@cellkit/execution";
import { type Ledger, openMemoryLedger } from "@cellkit/ledger";
import { createBackendList, createCredentialFiles, createRouter, type Router } from "@cellkit/router";
import { dispatcher, type RunFn, type ScriptedDispatcher } from "@cellkit/testing";
import type { CheckEvidence, ExecutionsEvidence } from "../../src/qualify-executions/evidence.ts";
import type { HookFn, HookName, PlaneOptions } from "../../src/qualify-executions/plane.ts";
import { qualifyExecutions } from "../../src/qualify-executions/qualify-executions.ts";
import { TemporaryDirectory } from "./project.ts";

/** A request whose work is `short` or `long`. */
export const request = (task: string): ExecutionRequestInput => ({
  apiVersion: "celln.dev/v1alpha1",
  id: "template",
  workload: { id: "qualification", caller: "test" },
  forge: { task },
  capabilities: { workspace: "none", timeoutMs: 60_000, memoryBytes: 1_048_576, outputBytes: 4_096 },
  execution: { lane: "agent", requireHardwareIsolation: true },
});

/** Long work goes on until its time is over or it is cancelled. */
const runs: RunFn = async ({ request: { forge, capabilities }, signal }) => {
  if (forge?.task !== "long") return { kind: "succeeded", output: "ok" };
  await pause(Number(capabilities.timeoutMs), undefined, { signal, ref: false }).catch(() => undefined);
  return signal.aborted ? { kind: "cancelled" } : { kind: "failed", reason: "out of time" };
};

/** Two dispatchers behind a router whose token files a test may change. */
export class LocalPlane {
  readonly nodes: readonly [ScriptedDispatcher, ScriptedDispatcher];
  /** What operators were told beside the checks. */
  readonly notes: string[] = [];
  readonly #directory: TemporaryDirectory;
  readonly #ledger: Ledger;
  #router: Router | undefined;
  #port = 0;

  private constructor(
    directory: TemporaryDirectory,
    ledger: Ledger,
    nodes: readonly [ScriptedDispatcher, ScriptedDispatcher],
  ) {
    this.#directory = directory;
    this.#ledger = ledger;
    this.nodes = nodes;
  }

  static async open(): Promise<LocalPlane> {
    const directory = await TemporaryDirectory.make();
    const path = (name: string) => join(directory.path, name);
    await writeFile(path("client"), "client-token-of-this-plane");
    await writeFile(path("backend"), "backend-token-of-this-plane");
    await writeFile(path("capability"), "discovery-token-of-this-plane");
    const start = (name: string) => dispatcher({ tokenFile: path("backend"), run: runs, node: { name } });
    const nodes = [await start("node-a"), await start("node-b")] as const;
    const plane = new LocalPlane(directory, await openMemoryLedger(), nodes);
    await plane.#startRouter();
    return plane;
  }

  /** A file of this plane, or the directory of all of them. */
  path(name = ""): string {
    return join(this.#directory.path, name);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Commands that do what they are for. */
  get hooks(): Record<HookName, HookFn> {
    const [first, second] = this.nodes;
    return {
      "kill-replica": async () => {
        await this.#router?.stop({ signal: AbortSignal.abort() });
        await this.#startRouter();
      },
      "start-replica": async () => undefined,
      "kill-node": () => first.kill(),
      "start-node": () => first.restart(),
      "lose-answers": async () => {
        first.fault("submit", { kind: "reset", when: "after-accept" }, { times: 1_000 });
        first.fault("read", { kind: "reset", when: "before-accept" }, { times: 1_000 });
      },
      "restore-answers": () => first.heal(),
      rotate: () => this.rotate(),
      upgrade: async () => second.change({ binaryVersion: "0.7.0" }),
      rollback: async () => second.change({ binaryVersion: "0.6.0" }),
    };
  }

  /** Replaces tokens. @default all of them */
  async rotate(roles: readonly string[] = ["client", "backend", "capability"]): Promise<void> {
    for (const role of roles) {
      const name = role === "capability" ? "discovery" : role;
      await writeFile(this.path(role), `second-${name}-token-of-this-plane`);
    }
  }

  /** Tries the list, with some of the commands. `found`: the checks by name, as they were told one by one. */
  async qualify(
    hooks: Partial<Record<HookName, HookFn>>,
    options: Partial<PlaneOptions> = {},
  ): Promise<{ evidence: ExecutionsEvidence; found: ReadonlyMap<string, CheckEvidence> }> {
    const tokenFile = this.path("client");
    const found = new Map<string, CheckEvidence>();
    const evidence = await qualifyExecutions(
      {
        client: new RouterClient({ url: this.url, tokenFile, submitTimeoutMs: 20_000 }),
        router: { url: this.url, tokenFile },
        backends: this.nodes.map(({ origin }) => origin),
        backendTokenFile: this.path("backend"),
        request: request("short"),
        longRequest: request("long"),
        hooks,
        settleMs: 60_000,
        // Long enough for one try to be sent: this has to run out, the try must not.
        ambiguousMs: 2_000,
        shortTimeoutMs: 200,
        signal: new AbortController().signal,
        onNote: (line) => this.notes.push(line),
        ...options,
      },
      { tool: { cellkit: "0", node: "0" }, router: this.url, digests: {}, templates: {} },
      (check) => void found.set(check.name, check),
    );
    return { evidence, found };
  }

  async close(): Promise<void> {
    await this.#router?.stop({ signal: AbortSignal.abort() });
    await Promise.all([...this.nodes.map((node) => node.close()), this.#ledger.close()]);
    await this.#directory.remove();
  }

  async #startRouter(): Promise<void> {
    this.#router = createRouter({
      ledger: this.#ledger,
      backends: createBackendList({ origins: this.nodes.map(({ origin }) => origin) }),
      tokens: createCredentialFiles({
        client: this.path("client"),
        otherClient: this.path("next-client"),
        backend: this.path("backend"),
        capability: this.path("capability"),
        otherCapability: this.path("next-capability"),
      }),
    });
    this.#port = (await this.#router.listen({ host: "127.0.0.1", port: this.#port })).port;
  }
}
