// One replica: its parts, the order in which they start, and the order in which they stop.
import {
  addCertificateMetrics,
  certificateTlsOptions,
  createHttpServer,
  type DaemonContext,
  ListenError,
  type RunningDaemon,
  StopSequence,
} from "@cellkit/daemon";
import type { PosixLedgerEvent, StoredLedger } from "@cellkit/ledger";
import { createBackendList, type DiscoveryEvent } from "./backend/backend-list.ts";
import { CapacityWatch } from "./capacity-watch.ts";
import { logWrongDate, readCertificate, watchCertificate } from "./certificate.ts";
import type { RouterConfig } from "./config.ts";
import {
  type CredentialFileOptions,
  type CredentialSource,
  createCredentialFiles,
} from "./credential-files.ts";
import { BackendListError } from "./errors.ts";
import { openNotes } from "./fingerprint/open-notes.ts";
import { ReplicaWatch } from "./fingerprint/replica-watch.ts";
import { openFileLimit, openFilesProblem } from "./open-files.ts";
import { placeByChance, placeByHash } from "./placement.ts";
import { resolveAt } from "./resolve-names.ts";
import { createRouter, type Router } from "./router.ts";
import { bucketOptions, ledgerAddress, openRouterLedger } from "./router-ledger.ts";
import { RouterLog } from "./router-log.ts";
import { createRouterMetrics } from "./router-metrics.ts";

/** How often a ledger with a limit is counted where it does not tell its count by itself. */
const countMs = 60_000;

/** Where a configuration's tokens come from. */
export function credentialsOf(
  config: RouterConfig,
  onProblem: NonNullable<CredentialFileOptions["onProblem"]>,
): CredentialSource {
  const { capabilityTokenFile, nextClientTokenFile, nextCapabilityTokenFile } = config;
  return createCredentialFiles({
    client: config.clientTokenFile,
    backend: config.tokenFile,
    ...(capabilityTokenFile === undefined ? {} : { capability: capabilityTokenFile }),
    ...(nextClientTokenFile === undefined ? {} : { otherClient: nextClientTokenFile }),
    ...(nextCapabilityTokenFile === undefined ? {} : { otherCapability: nextCapabilityTokenFile }),
    isolateCapability: config.isolateDiscovery,
    onProblem,
  });
}

/** Where a configuration's dispatchers come from. */
export function backendsOf(config: RouterConfig, onEvent: (event: DiscoveryEvent) => void) {
  const { backends: origins = [], backendsSrv: discovery, dnsServer } = config;
  return createBackendList({
    origins,
    ...(discovery === undefined ? {} : { discovery }),
    ...(dnsServer === undefined ? {} : { resolve: resolveAt(dnsServer) }),
    onEvent,
  });
}

/** The dispatchers at this moment, and what is wrong with them: undefined where the list is whole and not empty. */
export async function lookUpBackends(
  config: RouterConfig,
): Promise<{ readonly origins: readonly string[]; readonly problem: string | undefined }> {
  let failure: string | undefined;
  const origins = await backendsOf(config, (event) => {
    failure = event.problem;
  }).origins();
  const name = config.backendsSrv?.name;
  if (failure === "timeout") return { origins, problem: `${name} is not found in time` };
  if (failure !== undefined) return { origins, problem: `${name} is not found: ${failure}` };
  return { origins, problem: origins.length === 0 ? "no dispatcher is known" : undefined };
}

/**
 * All of a configuration's dispatchers at this moment: for those who must not take a part of them for the whole.
 * @throws BackendListError (CELLKIT_ROUTER_BACKEND_LIST) where a lookup failed, or took more than two seconds, or there is none
 */
export async function listBackends(config: RouterConfig): Promise<readonly string[]> {
  const { origins, problem } = await lookUpBackends(config);
  if (problem !== undefined) throw new BackendListError(problem);
  return origins;
}

/** What all replicas must have the same, as a list: the mode, the name of discovery, origins in their order. */
export function replicaList({ backends = [], backendsSrv, mode }: RouterConfig): readonly string[] {
  return [mode, backendsSrv === undefined ? "" : `${backendsSrv.name}:${backendsSrv.port}`, ...backends];
}

/**
 * Starts a replica, in the original's order: dispatchers, ledger, tokens, listener; resolves when it serves. Ledger, tokens and certificate
 * are looked at all, whichever fails.
 * @throws RouterError, ListenError, and LedgerError: then nothing listened
 */
export async function startRouter(
  context: DaemonContext<RouterConfig>,
  version: string,
): Promise<RunningDaemon> {
  const { config, log, defer } = context;
  const events = new RouterLog(log);
  const parts: { router?: Router; capacity?: CapacityWatch; replicas?: ReplicaWatch } = {};
  const backends = backendsOf(config, (event) => {
    events.hearDiscovery(event);
    figures.hearDiscovery(event);
  });
  const figures = createRouterMetrics({
    version,
    backends,
    counts: () => parts.router?.counts(),
    capacity: () => parts.capacity,
    replicas: () => parts.replicas,
  });

  const counted: number[] = [];
  const opening = openRouterLedger(config, (event: PosixLedgerEvent) => {
    events.hearLedger(event);
    figures.hearLedger(event);
    if (event.kind !== "scan") return;
    // The first counting ends before the opening does.
    if (parts.capacity === undefined) counted.push(event.count);
    else parts.capacity.see(event.count);
  }).then((opened) => {
    defer("the ledger", () => opened.close());
    return opened;
  });
  const credentials = credentialsOf(config, (error, leftOut) => events.hearTokenLeftOut(error, leftOut));
  const { tlsCert, tlsKey } = config;
  const files =
    tlsCert === undefined || tlsKey === undefined ? undefined : { certPath: tlsCert, keyPath: tlsKey };
  const [ledger, , pair] = await allOrTold(
    [opening, (async () => credentials.load())(), files === undefined ? undefined : readCertificate(files)],
    log,
  );
  const capacity = watchCapacity(ledger, context);
  if (capacity !== undefined) {
    parts.capacity = capacity;
    for (const count of counted) capacity.see(count);
  }

  if (pair !== undefined) logWrongDate(pair, log);

  const router = createRouter({
    ledger,
    backends,
    tokens: credentials,
    placement: config.mode === "random" ? placeByChance : placeByHash,
    limits: { connectionCount: config.maxConnections },
    keepAlive: config.keepBackends,
    onEvent(event) {
      events.hear(event);
      figures.hear(event);
    },
  });
  parts.router = router;
  defer("the router", () => router.stop({ signal: AbortSignal.abort() }));

  let isStopping = false;
  const internal = createHttpServer({
    onError: (error, request) => log.error({ err: error, ...request }, "the internal listener failed"),
    routes: [
      {
        method: "GET",
        path: "/health",
        handle: () => ({
          status: isStopping ? 503 : 200,
          json: { ok: !isStopping, replica: config.replica, tokensUsable: !events.hasCredentialProblem },
        }),
      },
      {
        method: "GET",
        path: "/metrics",
        handle: async () => ({
          status: 200,
          headers: { "content-type": figures.metrics.contentType },
          body: await figures.metrics.text(),
        }),
      },
    ],
  });
  defer("the internal listener", () => internal.close({ graceMs: 0 }));
  const inside = await internal.listen(config.internalListen);
  const { host, port } = config.listen;
  const open = await router
    .listen({ host, port, ...(pair === undefined ? {} : { tls: certificateTlsOptions(pair) }) })
    .catch((cause: unknown) => {
      throw new ListenError(host, port, { cause });
    });
  if (files !== undefined && pair !== undefined) {
    const watch = watchCertificate(files, pair, { router, log });
    defer("the watch over the certificate", () => watch.close());
    addCertificateMetrics(figures.metrics, watch);
  }
  if (config.fingerprint) {
    const replicas = await watchReplicas(context, { ledger, credentials, events });
    parts.replicas = replicas;
    defer("the fingerprint", () => replicas.close());
  }
  const openFiles = openFilesProblem(await openFileLimit(), config.maxConnections);
  if (openFiles !== undefined) log.warn(openFiles);
  const origins = await backends.origins();
  if (origins.length === 0)
    log.warn("no dispatcher is known yet: submissions get 503 until the name is found to have addresses");
  log.info(
    {
      listen: addressText(open),
      internal: addressText(inside),
      tls: pair !== undefined,
      ledger: ledger.url,
      backends: origins.length,
    },
    "ready",
  );
  return {
    stop() {
      isStopping = true;
      return new StopSequence()
        .add("let requests end", (signal) => router.stop({ signal }), { boundMs: config.shutdownDrainMs })
        .run();
    },
  };
}

/** undefined: there is no limit. */
function watchCapacity(
  ledger: StoredLedger,
  { log, defer }: DaemonContext<RouterConfig>,
): CapacityWatch | undefined {
  const { capacity } = ledger;
  if (capacity === undefined) return undefined;
  const watch = new CapacityWatch(capacity, (ratio, count) =>
    log.warn(
      { count, capacity, ratio },
      `the ledger is ${Math.round(100 * ratio)} % full; at its capacity new ids are refused`,
    ),
  );
  if (ledger.url.startsWith("file:")) return watch;
  const look = () =>
    ledger.count().then(
      (count) => watch.see(count),
      (error: unknown) =>
        log.warn({ code: (error as { code?: unknown }).code }, "the ledger's records could not be counted"),
    );
  const timer = setInterval(() => void look(), countMs).unref();
  defer("the watch over the ledger's size", () => clearInterval(timer));
  void look();
  return watch;
}

async function watchReplicas(
  { config, log }: DaemonContext<RouterConfig>,
  parts: { ledger: StoredLedger; credentials: CredentialSource; events: RouterLog },
): Promise<ReplicaWatch> {
  const { replica } = config;
  const watch = new ReplicaWatch({
    replica,
    ledgerId: parts.ledger.ledgerId,
    notes: await openNotes(ledgerAddress(config), bucketOptions(config)),
    credentials: parts.credentials,
    list: replicaList(config),
    onMismatch: (mismatch, state) => parts.events.hearMismatch(mismatch, state),
    onFailure: (error) =>
      log.warn(
        { code: (error as { code?: unknown } | undefined)?.code },
        "the fingerprint could not be left beside the ledger, or others' not be read; requests are served all the same",
      ),
  });
  void watch.look();
  return watch;
}

/** `host:port`, an IPv6 address in brackets. */
function addressText({ host, port }: { host: string; port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Waits for all of them. Throws the first failure; the others are in the log by then, so that a start tells all that is wrong at once. */
async function allOrTold<const T extends readonly unknown[]>(
  works: T,
  log: DaemonContext<RouterConfig>["log"],
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const failures = (await Promise.allSettled(works)).flatMap((one) =>
    one.status === "rejected" ? [one.reason as Error & { code?: unknown }] : [],
  );
  for (const { code, message } of failures.slice(1)) log.error({ code }, message);
  return Promise.all(works);
}
