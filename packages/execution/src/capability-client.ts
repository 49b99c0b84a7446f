import { readCaFile } from "./ca-file.ts";
import { causeCode } from "./cause-code.ts";
import { type ClientCertificateFiles, readClientCertificate } from "./client-certificate.ts";
import {
  type CapabilityVerdict,
  capabilityVerdict,
  type ProbeObservation,
  withCause,
  withoutProbe,
} from "./core/capability-verdict.ts";
import { parseRouterUrl, type RouterUrl } from "./core/router-url.ts";
import { ExecutionOptionError } from "./errors.ts";
import { type Exchanged, exchange } from "./exchange.ts";
import { inTime, limitTime } from "./limit-time.ts";
import { checkedCa, checkedClientFiles, checkedMs } from "./router-options.ts";
import { readTokenFile } from "./token-file.ts";

/** Where and how to ask. */
export interface CapabilityClientOptions {
  /** Whether to ask at all; false gives the state `disabled`. Default true. */
  readonly enabled?: boolean | undefined;
  /** The router, or an edge before it, perhaps with a path prefix. A wrong one is a state, not an error. */
  readonly url: string;
  /** A file with the discovery token, which may do nothing but ask; read for each probe. */
  readonly tokenFile: string;
  /** Needed for every `http:` URL, loopback too. Default false. */
  readonly allowInsecureHttp?: boolean | undefined;
  /** PEM certificates that the router's may come from, instead of the system's. Not together with `caFile`. */
  readonly ca?: string | undefined;
  /** A file with such certificates, the complete bundle; read for each probe. */
  readonly caFile?: string | undefined;
  /**
   * A file with the certificate to show to an edge that asks for one, PEM, with those that lead to its CA; read for each probe.
   * Together with `clientKeyFile`, or not at all.
   */
  readonly clientCertFile?: string | undefined;
  /** A file with the certificate's private key, PEM, without a passphrase; read for each probe. */
  readonly clientKeyFile?: string | undefined;
  /** Everything in a probe together. Default and maximum 5 000. */
  readonly timeoutMs?: number | undefined;
}

/** The default and the most that a probe may take, and the most that it reads. */
const probe = { timeoutMs: 5_000, maxBodyBytes: 2 * 1024 * 1024 };

/** What a URL must not end with, as it is added to it. */
const endsWithRoute = /\/v1(?:\/capabilities)?$/;

/** Where a router is when the environment does not say it. */
const clusterRouter = "http://celln-router.celln-system.svc.cluster.local:8787";

/**
 * Options from the environment of the second document: `CELLN_ENABLED`, `CELLN_ROUTER_URL`, `CELLN_ALLOW_INSECURE_HTTP`,
 * `CELLN_CAPABILITY_TOKEN_FILE`, and `SSL_CERT_FILE` as CA bundle; and `CELLN_CLIENT_CERT_FILE` with `CELLN_CLIENT_KEY_FILE`, which
 * are of this client alone. Only the exact text `true` is true.
 */
export function capabilityOptionsFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): CapabilityClientOptions {
  const { CELLN_ROUTER_URL: url, CELLN_CAPABILITY_TOKEN_FILE: tokenFile, SSL_CERT_FILE: caFile } = env;
  const { CELLN_CLIENT_CERT_FILE: clientCertFile = "", CELLN_CLIENT_KEY_FILE: clientKeyFile = "" } = env;
  return {
    enabled: env["CELLN_ENABLED"] === "true",
    url: url || clusterRouter,
    tokenFile: tokenFile ?? "",
    allowInsecureHttp: env["CELLN_ALLOW_INSECURE_HTTP"] === "true",
    ...(caFile ? { caFile } : {}),
    // One without the other is a file that is not there: a state, not an error.
    ...(clientCertFile || clientKeyFile ? { clientCertFile, clientKeyFile } : {}),
  };
}

/**
 * Asks a router whether a run could be placed: one call, on demand, never another way when that fails. It can run nothing,
 * and a good answer is preflight only.
 */
export class CapabilityClient {
  readonly #options: () => CapabilityClientOptions;

  /**
   * @param options or a function that gives them, called for each probe
   * @throws {@link ExecutionOptionError} (`CELLKIT_EXECUTION_OPTION`) for a `timeoutMs` (1 to 5,000) or `ca` that is out of range, or
   * for one of `clientCertFile` and `clientKeyFile`
   */
  constructor(options: CapabilityClientOptions | (() => CapabilityClientOptions)) {
    this.#options = typeof options === "function" ? options : () => options;
    if (typeof options !== "function") checkOptions(options);
  }

  /**
   * One probe. Every failure is a state; it only rejects with the signal's reason when the caller gives up, and with what a
   * function for options throws.
   */
  async probe({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<CapabilityVerdict> {
    signal?.throwIfAborted();
    const options = this.#options();
    const { timeoutMs, clientFiles } = checkOptions(options);
    if (options.enabled === false) return withoutProbe.disabled;
    const url = parseRouterUrl(options.url);
    if (url === undefined) return withoutProbe.urlInvalid;
    if (!url.secure && options.allowInsecureHttp !== true) return withoutProbe.plaintext;
    const time = limitTime(timeoutMs, signal);
    try {
      const token = await inTime(readTokenFile(options.tokenFile), time.signal);
      if (token.kind === "unavailable" || token.kind === "late")
        return withCause(withoutProbe.credentialUnavailable, causeCode(token.cause));
      if (token.kind !== "token") return withCause(withoutProbe.credentialInvalid, causeCode(token.cause));
      const verdict = capabilityVerdict(
        await ask(url, token.token, { ...options, clientFiles }, time.signal),
      );
      const hasRoute = verdict.state === "not_installed" && endsWithRoute.test(url.prefix);
      return withCause(verdict, hasRoute ? "URL_HAS_ROUTE" : undefined);
    } finally {
      time.clear();
      signal?.throwIfAborted();
    }
  }
}

interface CheckedOptions {
  readonly timeoutMs: number;
  readonly clientFiles: ClientCertificateFiles | undefined;
}

function checkOptions({ timeoutMs = probe.timeoutMs, ...rest }: CapabilityClientOptions): CheckedOptions {
  checkedCa(rest);
  if (checkedMs("timeoutMs", timeoutMs) > probe.timeoutMs) {
    throw new ExecutionOptionError("timeoutMs", `is ${timeoutMs}; a probe takes at most ${probe.timeoutMs}`);
  }
  return { timeoutMs, clientFiles: checkedClientFiles(rest) };
}

async function ask(
  url: RouterUrl,
  token: string,
  options: CapabilityClientOptions & Pick<CheckedOptions, "clientFiles">,
  signal: AbortSignal,
): Promise<ProbeObservation> {
  const { caFile, clientFiles } = options;
  const bundle = caFile === undefined ? undefined : await inTime(readCaFile(caFile), signal);
  if (bundle !== undefined && bundle.kind !== "ca")
    return { kind: "failed", cause: causeCode(bundle.cause) ?? "CELLKIT_EXECUTION_CA_FILE" };
  const client =
    clientFiles === undefined ? undefined : await inTime(readClientCertificate(clientFiles, signal), signal);
  if (client !== undefined && client.kind !== "pair")
    return { kind: "failed", cause: "CELLKIT_EXECUTION_CLIENT_CERTIFICATE" };
  return observed(
    await exchange({
      origin: url.origin,
      method: "GET",
      path: `${url.prefix}/v1/capabilities`,
      headers: { Authorization: `Bearer ${token}`, Accept: "application/json" },
      ca: bundle?.pem ?? options.ca,
      clientCertificate: client,
      connectTimeoutMs: probe.timeoutMs,
      maxBodyBytes: probe.maxBodyBytes,
      signal,
    }),
  );
}

/** A lost body counts by its status, as the reference sees the status before it reads the body. */
function observed(exchanged: Exchanged): ProbeObservation {
  if (exchanged.kind === "answer") return exchanged;
  const cause = causeCode(exchanged.cause);
  if (exchanged.kind === "client-refused")
    return { kind: "failed", cause: cause ?? "CELLKIT_EXECUTION_CLIENT_REFUSED" };
  if (exchanged.kind === "not-sent" || exchanged.status === undefined) return { kind: "failed", cause };
  return { kind: "body-unusable", status: exchanged.status, cause };
}
