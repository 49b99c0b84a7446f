// One node: its parts, the order in which they start, and the order in which they stop.
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { openBucket, s3Credentials } from "@cellkit/bucket";
import { type DaemonContext, type Metrics, type RunningDaemon, StopSequence } from "@cellkit/daemon";
import { createWorkerdEngine, type NodeEngine, reservedFieldPrefixes } from "@cellkit/engine";
import { createProbeKey } from "@cellkit/peer";
import { createSpliceServer, type SpliceServer } from "@cellkit/splice";
import type { CelldConfig } from "./config.ts";
import { ignoredVariables } from "./environment.ts";
import { DrainTimeoutError, FencedError } from "./errors.ts";
import { type FleetRoad, joinFleet } from "./fleet-road.ts";
import { createInternalListener } from "./internal-listener.ts";
import { LoadMeter } from "./node-load.ts";
import { createNodeMetrics } from "./node-metrics.ts";
import { answerPublicly } from "./public-answers.ts";
import { nodeState } from "./state.ts";

/** How long the engine's own stop may take; requests on the public listener get the rest of the drain's bound. */
const engineStopMs = 10_000;

/** Close code and reason of sockets on a node that drains (RFC 6455 section 7.4.1, IANA registry: Service Restart). */
const nodeDraining = { code: 1012, reason: "node draining" } as const;

/**
 * How long sockets of cells here are closed from inside before those on this ingress are closed from outside. A regular
 * socket that the client has closed, but not the cell, holds its cell back for half of workerd's stop time (4 s).
 */
const fromInsideMs = 250;

/** Starts a node; resolves when it is healthy. @throws the typed errors of the parts: bucket, listeners, engine */
export async function startNode(
  context: DaemonContext<CelldConfig>,
  version: string,
): Promise<RunningDaemon> {
  const { config, log, signal, defer, requestStop, fail } = context;
  const { endpoint, region } = config;
  const bucket = openBucket(config.bucket, { region, endpoint });
  defer("the bucket", () => bucket.close());

  const probeKey = createProbeKey();
  const cfBlobHeader = `cellkit-cf-${randomBytes(16).toString("hex")}`;
  let road: FleetRoad | undefined;
  let engine: NodeEngine | undefined;
  const isDraining = () => publicServer.draining;
  const publicServer: SpliceServer = createSpliceServer(() => engine?.publicSocket, {
    local: (request) => answerPublicly(request, { draining: isDraining(), engine }),
    clientHeader: { name: cfBlobHeader, value: ({ address }) => ({ clientIp: address }) },
    strippedRequestFields: reservedFieldPrefixes,
  });
  defer("the public listener", () => publicServer.close());
  const loadMeter = new LoadMeter({ publicServer, engine: () => engine });
  let metrics: Metrics | undefined;
  /** Made for the first scrape: a start has better things to do. */
  const nodeMetrics = (): Metrics => {
    metrics ??= createNodeMetrics({
      node: config.node,
      version,
      publicServer,
      engine: () => engine,
      ignoredVariables: ignoredVariables(process.env),
    });
    return metrics;
  };
  let advertise = config.advertise ?? config.internalListen;
  const internalServer = createInternalListener(
    {
      node: config.node,
      engine: () => engine,
      road: () => road,
      identity: () => ({
        node: config.node,
        advertise: addressText(advertise),
        privateKey: probeKey.privateKey,
      }),
      operatorOpen: config.operatorApi === "open",
      stop: () => requestStop("POST /shutdown"),
      state: () => nodeState({ node: config.node, version, draining: isDraining(), publicServer, engine }),
      metrics: nodeMetrics,
    },
    context,
  );

  const internal = await internalServer.listen(config.internalListen);
  const open = await publicServer.listen(config.listen.host, config.listen.port);
  advertise = config.advertise ?? { host: internal.host, port: internal.port };

  engine = createWorkerdEngine({
    bucket,
    bucketUrl: config.bucket,
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    credentials: s3Credentials(config.bucket, { region }),
    directory: config.watch ?? join(tmpdir(), `celld-${process.pid}`),
    advertise: async () => {
      road = await joinFleet(
        {
          bucket,
          node: config.node,
          describe: () => ({
            addr: addressText(advertise),
            probePublicKey: probeKey.publicKeyHex,
            load: loadMeter.read(),
          }),
          serving: () => engine?.state === "ready" && !isDraining(),
          roadPort: config.roadPort,
          relays: config.roadRelay,
          clusterPort: () => engine?.clusterPort,
          callSocket: (kind) => (kind === "do" ? engine?.peerSocket : engine?.peerRpcSocket),
        },
        context,
      );
      return road.advertise;
    },
    node: config.node,
    log,
    ...(config.varsFile === undefined ? {} : { varsFile: config.varsFile }),
    ...(config.secretsFile === undefined ? {} : { secretsFile: config.secretsFile }),
    cfBlobHeader,
    events: {
      fenced: (detail) => fail(new FencedError(detail)),
      failed: (error) => fail(error),
      ready: () => road?.renew(),
      exited: (detail) => {
        road?.renew();
        log.error({ detail }, "workerd ended by itself; it is started again");
      },
    },
  });
  const running = engine;
  defer("the engine", () => running.stop());
  await running.start({ signal });
  log.info(
    { public: addressText(open), internal: addressText(internal), deployment: running.deployment ?? null },
    "ready",
  );
  return { stop: () => drainSequence(context, publicServer, running, () => road).run() };
}

/** The ordered stop: refuse, tell the sockets, let requests end, hand the cells over. */
function drainSequence(
  { config, log }: DaemonContext<CelldConfig>,
  publicServer: SpliceServer,
  engine: NodeEngine,
  road: () => FleetRoad | undefined,
): StopSequence {
  const deadlineMs = performance.now() + config.shutdownDrainMs;
  const leftMs = () => Math.max(0, deadlineMs - performance.now());
  const steps = new StopSequence(({ name, outcome, tookMs }) =>
    log.info({ step: name, outcome, tookMs: Math.round(tookMs) }, "drain"),
  );
  steps.add("refuse new requests", () => {
    publicServer.drain();
    road()?.renew();
  });
  steps.add(
    "close sockets",
    async () => {
      const closingCells = engine.closeCells();
      await Promise.race([closingCells.catch(() => undefined), setTimeout(fromInsideMs)]);
      publicServer.closeSockets(nodeDraining.code, nodeDraining.reason);
      const closed = await closingCells;
      log.info({ ...closed }, "closed the regular sockets of cells here");
    },
    { boundMs: () => Math.min(2_000, leftMs()) },
  );
  // Sockets, too: a cell that still handles the close of one when workerd is told to stop is held back.
  steps.add("let requests end", (signal) => publicServer.finished({ signal }), {
    boundMs: () => Math.max(0, leftMs() - Math.min(engineStopMs, config.shutdownDrainMs / 2)),
  });
  steps.add(
    "hand the cells over",
    async () => {
      const idle = () => publicServer.counts().inFlight === 0 && (road()?.openCount() ?? 0) === 0;
      const { clean } = await engine.drain({ deadlineMs: leftMs(), idle });
      if (!clean)
        throw new DrainTimeoutError(
          "workerd did not leave the cluster in time; its cells may be away for its lease (20 s)",
        );
    },
    { boundMs: () => leftMs() + 2_000 },
  );
  return steps;
}

/** `host:port`, an IPv6 address in brackets. */
function addressText({ host, port }: { host: string; port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
