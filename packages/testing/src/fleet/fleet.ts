import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveFleetOptions, type TestFleetOptions } from "./options.ts";
import { LocalNode, type TestNode } from "./test-node.ts";

/** Nodes that clients can lose. */
export interface TestFleet extends AsyncDisposable {
  readonly nodes: readonly TestNode[];
  /** Their URLs: the `endpoints` of a client. */
  readonly endpoints: readonly string[];
  /** Drains and restarts each node, one after the other, as an operator does. */
  roll(): Promise<void>;
  /** Kills all. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts nodes in this process. What clients see is what they see of celld, whose public listener each has: health, drains,
 * refusals, close frames. Behind it is the test's application in place of workerd: no cells, no storage, no peers.
 *
 * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`)
 */
export async function fleet(options: TestFleetOptions = {}): Promise<TestFleet> {
  const resolved = resolveFleetOptions(options);
  const directory = await mkdtemp(join(tmpdir(), "cellkit-fleet-"));
  const nodes = Array.from(
    { length: resolved.nodeCount },
    (_, index) => new LocalNode(`node-${index}`, join(directory, `${index}.sock`), resolved),
  );
  const close = async () => {
    await Promise.all(nodes.map((node) => node.kill()));
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await Promise.all(nodes.map((node) => node.restart()));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    nodes,
    endpoints: nodes.map(({ url }) => url),
    async roll() {
      for (const node of nodes) {
        await node.stop();
        await node.restart();
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
