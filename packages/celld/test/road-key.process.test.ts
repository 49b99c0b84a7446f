// The fleet's key is replaced while calls run over the road, and while new tunnels are opened with whichever key signs just then.
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import {
  dialTunnel,
  dropOldKey,
  laggingNodes,
  NodeDirectory,
  promoteNextKey,
  publishNextKey,
  type RotationState,
  readRotation,
  requireFleetKeys,
  signWithNextKey,
} from "@cellkit/peer";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { kinds, MirrorLoad, mirrorProject } from "./support/mirror-load.ts";
import type { TestNode } from "./support/test-node.ts";

const callBoundMs = 60_000;
/** Nodes read the keys every 5 s. */
const stepBoundMs = 60_000;

let fleet: Fleet;
let nodes: TestNode[];

beforeAll(async () => {
  ({ fleet, nodes } = await Fleet.start(3, { project: mirrorProject }));
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Asks workerd itself behind an alias, over a tunnel of its own. */
async function askOverNewTunnel(alias: string, port: number): Promise<number> {
  const request = get({ host: alias, port, path: "/ready", agent: false });
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  return answer.statusCode ?? 0;
}

/** Opens new tunnels to every node, one after the other, until it is stopped. */
class NewTunnels {
  count = 0;
  readonly failed: string[] = [];
  #running = true;
  readonly #work: Promise<void>;

  constructor(aliases: readonly string[], port: number) {
    this.#work = (async () => {
      for (let turn = 0; this.#running; turn += 1) {
        const alias = aliases[turn % aliases.length] ?? "";
        const status = await askOverNewTunnel(alias, port).catch(String);
        if (status === 200) this.count += 1;
        else this.failed.push(`${alias}: ${status}`);
      }
    })();
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#work;
  }
}

it("no call and no new tunnel fails while the key is replaced; the old one is refused after it", async () => {
  const directory = new NodeDirectory(fleet.bucket, { cacheMs: 0 });
  const [ingress, ...owners] = nodes as [TestNode, ...TestNode[]];
  for (const owner of owners) await owner.ask(`/cells/of-${owner.node}/facts`);
  const { live } = await directory.list();
  const { keyring, port } = await fleet.road();
  const tunnels = new NewTunnels(
    live.flatMap(({ roadAlias }) => roadAlias ?? []),
    port,
  );
  const loads = owners.map((owner) => new MirrorLoad(ingress, `of-${owner.node}`, callBoundMs));
  /** Until each of them has gone on under what is in force now. */
  const goOn = async () => {
    const opened = tunnels.count + 10;
    const answered = loads.map(({ right }) => ({ ...right }));
    await until(
      "calls and tunnels that go on",
      () =>
        tunnels.failed.length > 0 ||
        (tunnels.count >= opened &&
          loads.every(({ right }, index) =>
            kinds.every((kind) => right[kind] > (answered[index]?.[kind] ?? 0)),
          )),
      callBoundMs,
    );
  };
  /** Until every node has followed, and the relay, whose record nobody could read. */
  const followed = async (state: RotationState) => {
    const relayFollows = () =>
      keyring.shown.accepts.includes(state.next ?? "") &&
      (state.phase === "accept" || keyring.shown.signs === state.next);
    await until(
      `nodes that follow to ${state.phase}`,
      async () => relayFollows() && laggingNodes(state, await directory.list(), Date.now()).length === 0,
      stepBoundMs,
    );
    await goOn();
  };

  await goOn();
  const [old] = (await requireFleetKeys(fleet.bucket)).keys;
  await followed(await publishNextKey(fleet.bucket));
  await followed(await signWithNextKey(fleet.bucket, await directory.list()));
  await followed(await promoteNextKey(fleet.bucket, await directory.list()));
  const { current } = await dropOldKey(fleet.bucket, await directory.list());
  await until(
    "nodes that accept the new key only",
    async () => {
      const { live } = await directory.list();
      return live.every(({ peerKeys }) => peerKeys?.signs === current && peerKeys.accepts.length === 1);
    },
    stepBoundMs,
  );
  await goOn();
  await Promise.all([tunnels, ...loads].map((load) => load.stop()));

  expect(tunnels.failed).toEqual([]);
  for (const { failed, wrong } of loads) expect([failed, wrong]).toEqual([[], []]);
  expect(fleet.roadFailures).toEqual([]);
  expect(await readRotation(fleet.bucket)).toMatchObject({ phase: "none", current });
  for (const { node, addr } of (await directory.list()).live) {
    const [host = "", internalPort] = addr.split(":");
    const address = { host, port: Number(internalPort) };
    const dialled = dialTunnel({ address, kind: "cluster", key: old, self: "late", destination: node });
    await expect(dialled).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 401 });
  }
});
