// One edge: its parts, the order in which they start, and the order in which they stop.
import {
  CertificateWatch,
  certificateDateProblem,
  createHttpServer,
  type DaemonContext,
  type Metrics,
  type RunningDaemon,
  StopSequence,
} from "@cellkit/daemon";
import { certificateError, readCertificate } from "./certificate.ts";
import { checkEdge } from "./check.ts";
import type { EdgeConfig } from "./config.ts";
import { EdgeListener } from "./edge-listener.ts";
import { createEdgeMetrics } from "./edge-metrics.ts";

/** How long requests that run may take once the edge is told to stop. */
const stopMs = 20_000;

/** Starts an edge; resolves when it serves, or when `--check` found nothing wrong. @throws CertificateError, CheckFailedError, ListenError */
export async function startEdge(context: DaemonContext<EdgeConfig>, version: string): Promise<RunningDaemon> {
  const { config, log, defer, requestStop } = context;
  const { backend } = config;
  const files = { certPath: config.tlsCert, keyPath: config.tlsKey, clientCaPath: config.clientCa };
  if (config.check) {
    await checkEdge({ files, backend, log });
    requestStop("checked");
    return { stop: () => new StopSequence().run() };
  }
  const certificate = await readCertificate(files);
  const wrongDate = certificateDateProblem(certificate, Date.now());
  if (wrongDate !== undefined) log.error(`the certificate ${wrongDate}: clients will refuse it`);

  const mode = config.executionRouter ? "execution" : "parent";
  const ids = config.strictIds ? "strict" : "router";
  const limits = { connectionCount: config.maxConnections };
  const listener = new EdgeListener({ backend, mode, ids, certificate, log, limits });
  defer("the listener", () => listener.close(AbortSignal.abort()));
  const watch = new CertificateWatch(files, {
    current: certificate,
    onChange(pair) {
      listener.useCertificate(pair);
      log.info(
        { fingerprint: pair.fingerprint, validTo: new Date(pair.validToMs).toISOString() },
        "new certificate in use",
      );
    },
    onProblem(problem) {
      const error = certificateError(problem);
      log.error(
        { code: error.code },
        `${error.message}; the certificate in use stays until the files are good`,
      );
    },
  });
  defer("the watch over the certificate", () => watch.close());

  let metrics: Metrics | undefined;
  let isStopping = false;
  const internal = createHttpServer({
    onError: (error, request) => log.error({ err: error, ...request }, "the internal listener failed"),
    routes: [
      {
        method: "GET",
        path: "/health",
        handle: () => ({ status: isStopping ? 503 : 200, json: { ok: !isStopping } }),
      },
      {
        method: "GET",
        path: "/metrics",
        async handle() {
          metrics ??= createEdgeMetrics({ version, listener, watch });
          return {
            status: 200,
            headers: { "content-type": metrics.contentType },
            body: await metrics.text(),
          };
        },
      },
    ],
  });
  defer("the internal listener", () => internal.close({ graceMs: 0 }));
  const inside = await internal.listen(config.internalListen);
  const open = await listener.listen(config.listen);
  log.info(
    { mode, listen: addressText(open), internal: addressText(inside), backend: backend.origin },
    "ready",
  );
  return {
    stop() {
      isStopping = true;
      return new StopSequence()
        .add("let requests end", (signal) => listener.close(signal), { boundMs: stopMs })
        .run();
    },
  };
}

/** `host:port`, an IPv6 address in brackets. */
function addressText({ host, port }: { host: string; port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
