// What every daemon with a certificate tells of it, under the same names.
import type { CertificateWatch } from "./certificate-watch.ts";
import type { Metrics } from "./metrics.ts";

/**
 * Adds `certificate_expiry_timestamp_seconds`, `certificate_reload_failing`, `certificate_reloads_total` and
 * `certificate_reload_failures_total`, behind the metrics' prefix. Read from the watch when somebody asks, so that metrics may be
 * made later than it. Once for each {@link Metrics}.
 */
export function addCertificateMetrics(metrics: Metrics, watch: CertificateWatch): void {
  metrics.gauge("certificate_expiry_timestamp_seconds", "When the certificate in use ends.", {
    collect: (each) => each.set(watch.current.validToMs / 1_000),
  });
  metrics.gauge("certificate_reload_failing", "1 while the files hold a pair that cannot be used.", {
    collect: (each) => each.set(Number(watch.problem !== undefined)),
  });
  metrics.counter("certificate_reloads_total", "Pairs that took the place of one in use.", [], {
    count: () => watch.counts.reloads,
  });
  metrics.counter("certificate_reload_failures_total", "Problems of the files that were told.", [], {
    count: () => watch.counts.failures,
  });
}
