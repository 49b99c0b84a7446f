// `GET /state`: what the operator and people look at. A member is true within the bound said here, or it is absent.
import type { EngineState, NodeEngine } from "@cellkit/engine";
import type { SpliceServer } from "@cellkit/splice";

/** The answer of `GET /state`. */
export interface NodeStateAnswer {
  /** Where ownership is kept. */
  ownership: "s3";
  node: string;
  /** celld's own version. */
  version: string;
  runtime: { engine: "workerd"; state: EngineState; restarts: number; pid?: number };
  deployment?: { script_name: string; version: string };
  draining: boolean;
  /** Cells open here, an upper bound: workerd evicts silently, and a cell counts until its object was collected. 0 without a Worker. */
  occupied: number;
  /** Cells being restored here. workerd opens a cell within the request that asks for it, so none waits: 0 once it serves, 1 while workerd itself starts. */
  restoring: number;
  /** Nothing sheds load here yet, so never a reason. */
  shedding: null;
  /** Resident memory of workerd and of celld. */
  rss_bytes: number;
  /** Scopes of the cells in `occupied`, at most 10,000. */
  residents?: readonly string[];
  regular_sockets?: number;
  connections: number;
  /** Requests on the public listener that are not yet answered. */
  in_flight: number;
  /** Upgraded connections on the public listener. */
  sockets: number;
}

/** Reads a node's state. */
export async function nodeState(node: {
  node: string;
  version: string;
  draining: boolean;
  publicServer: SpliceServer;
  engine: NodeEngine | undefined;
}): Promise<NodeStateAnswer> {
  const { connections, inFlight, sockets } = node.publicServer.counts();
  const snapshot = await node.engine?.snapshot();
  const state = snapshot?.state ?? "starting";
  return {
    ownership: "s3",
    node: node.node,
    version: node.version,
    runtime: {
      engine: "workerd",
      state,
      restarts: snapshot?.restartCount ?? 0,
      ...(snapshot?.pid === undefined ? {} : { pid: snapshot.pid }),
    },
    ...(snapshot?.deployment === undefined
      ? {}
      : {
          deployment: { script_name: snapshot.deployment.scriptName, version: snapshot.deployment.version },
        }),
    draining: node.draining,
    occupied: snapshot?.occupied ?? 0,
    restoring: isRestoring(state) ? 1 : 0,
    shedding: null,
    rss_bytes: process.memoryUsage.rss() + (snapshot?.rssBytes ?? 0),
    ...(snapshot?.residents === undefined ? {} : { residents: snapshot.residents }),
    ...(snapshot?.regularSockets === undefined ? {} : { regular_sockets: snapshot.regularSockets }),
    connections,
    in_flight: inFlight,
    sockets,
  };
}

/** Whether workerd itself is being started: no cell here can be opened before. */
export function isRestoring(state: EngineState = "starting"): boolean {
  return state === "starting" || state === "restarting";
}
