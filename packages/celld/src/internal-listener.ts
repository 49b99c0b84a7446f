// The internal listener: the paths of the peer protocol, the operator's routes, and what anybody may read.
import {
  createHttpServer,
  type DaemonContext,
  type HttpServer,
  type Metrics,
  type Route,
} from "@cellkit/daemon";
import { guardHeads, type ProbeIdentity, protocolRoutes } from "@cellkit/peer";
import type { FleetRoad } from "./fleet-road.ts";
import { type OperatorRoutesOptions, operatorRoutes } from "./operator-routes.ts";
import type { NodeStateAnswer } from "./state.ts";

/** What the listener answers from. */
export interface InternalListenerOptions extends Pick<OperatorRoutesOptions, "node" | "engine" | "stop"> {
  /** Undefined until the fleet was joined. */
  readonly road: () => FleetRoad | undefined;
  /** Who answers probes. */
  readonly identity: () => ProbeIdentity;
  /** Whether everybody may use the operator's routes. */
  readonly operatorOpen: boolean;
  readonly state: () => Promise<NodeStateAnswer>;
  readonly metrics: () => Metrics;
}

/** Builds the listener; what is asked of it before the node has joined its fleet gets 503. */
export function createInternalListener(
  options: InternalListenerOptions,
  { log, defer }: Pick<DaemonContext<unknown>, "log" | "defer">,
): HttpServer {
  const { road, state, metrics, identity, operatorOpen } = options;
  const protocol = protocolRoutes({
    listener: () => road()?.listener,
    olderVerifier: () => road()?.olderVerifier,
    identity,
  });
  const open: Route[] = [
    { method: "GET", path: "/state", handle: async () => ({ status: 200, json: await state() }) },
    {
      method: "GET",
      path: "/metrics",
      handle: async () => ({
        status: 200,
        headers: { "content-type": metrics().contentType },
        body: await metrics().text(),
      }),
    },
  ];
  const server = createHttpServer({
    routes: [
      ...open,
      ...operatorRoutes({
        ...options,
        directory: () => road()?.directory,
        access: () => ({ verifier: road()?.listener.verifier, open: operatorOpen }),
      }),
    ],
    onRequest: protocol.request,
    onUpgrade: protocol.upgrade,
    onError: (error, request) =>
      log.error({ err: error, ...request }, "a route of the internal listener failed"),
  });
  const guard = guardHeads(server.server);
  defer("the internal listener", () => {
    guard.close();
    return server.close({ graceMs: 500 });
  });
  return server;
}
