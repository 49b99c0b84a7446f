import { bundleProblem } from "./ca-file.ts";
import type { ClientCertificateFiles } from "./client-certificate.ts";
import type { Pace } from "./core/pace.ts";
import { parseRouterUrl, type RouterUrl } from "./core/router-url.ts";
import { shownUrl } from "./core/shown.ts";
import { ExecutionOptionError } from "./errors.ts";

/** Options of a {@link RouterClient}. */
export interface RouterClientOptions {
  /** The router, or an edge before it: `https://host:port`, perhaps with a path prefix. */
  readonly url: string;
  /** A file with the client token; read for each call. */
  readonly tokenFile: string;
  /** PEM certificates that the router's may come from, instead of the system's. Not together with `caFile`. */
  readonly ca?: string | undefined;
  /** A file with such certificates, the complete bundle; read for each call. */
  readonly caFile?: string | undefined;
  /**
   * A file with the certificate to show to an edge that asks for one, PEM, with those that lead to its CA; read for each call.
   * Together with `clientKeyFile`, or not at all.
   */
  readonly clientCertFile?: string | undefined;
  /** A file with the certificate's private key, PEM, without a passphrase; read for each call. */
  readonly clientKeyFile?: string | undefined;
  /** Allow `http:` to another machine: the token and all work travel readable. Loopback needs no permission. Default false. */
  readonly allowInsecureHttp?: boolean | undefined;
  /** How long a connection may take, TLS included. Default 5 000. */
  readonly connectTimeoutMs?: number | undefined;
  /** How long one call may take in all. Default 30 000, as the reference's controller. */
  readonly callTimeoutMs?: number | undefined;
  /** How long `submit` goes on trying, all tries together. Default 60 000. */
  readonly submitTimeoutMs?: number | undefined;
  /** How long `result` waits beyond the time that the request allows its run. Default 30 000. */
  readonly resultGraceMs?: number | undefined;
  /** How long `cancelUntilTerminal` goes on. Default 60 000. */
  readonly cancelTimeoutMs?: number | undefined;
  /** The shortest pause between two tries. Default 100. */
  readonly pollMinMs?: number | undefined;
  /** The longest pause between two tries. Default 5 000. */
  readonly pollMaxMs?: number | undefined;
}

/** Complete options, checked. */
export interface ResolvedRouterOptions {
  readonly url: RouterUrl;
  readonly tokenFile: string;
  readonly ca: string | undefined;
  readonly caFile: string | undefined;
  readonly clientFiles: ClientCertificateFiles | undefined;
  readonly connectTimeoutMs: number;
  readonly callTimeoutMs: number;
  readonly submitTimeoutMs: number;
  readonly resultGraceMs: number;
  readonly cancelTimeoutMs: number;
  readonly pace: Pace;
}

/** Timers take no more. */
const maxTimerMs = 2 ** 31 - 1;

/** @throws {@link ExecutionOptionError} (`CELLKIT_EXECUTION_OPTION`) */
export function resolveRouterOptions(options: RouterClientOptions): ResolvedRouterOptions {
  const url = parseRouterUrl(options.url);
  if (url === undefined) {
    throw new ExecutionOptionError(
      "url",
      `is ${shownUrl(options.url)}, which is no http or https URL of a host without user, query and fragment`,
    );
  }
  if (!url.secure && !url.loopback && options.allowInsecureHttp !== true) {
    throw new ExecutionOptionError(
      "url",
      `is ${shownUrl(options.url)}: http to another machine, so that everybody on the way reads the token; use https, or set allowInsecureHttp`,
    );
  }
  if (options.tokenFile === "") throw new ExecutionOptionError("tokenFile", "is empty");
  const ms = (name: TimeOption, standard: number) => checkedMs(name, options[name] ?? standard);
  const pace = { minMs: ms("pollMinMs", 100), maxMs: ms("pollMaxMs", 5_000) };
  if (pace.minMs > pace.maxMs)
    throw new ExecutionOptionError("pollMinMs", `is ${pace.minMs}, more than pollMaxMs (${pace.maxMs})`);
  return {
    url,
    tokenFile: options.tokenFile,
    ...checkedCa(options),
    clientFiles: checkedClientFiles(options),
    connectTimeoutMs: ms("connectTimeoutMs", 5_000),
    callTimeoutMs: ms("callTimeoutMs", 30_000),
    submitTimeoutMs: ms("submitTimeoutMs", 60_000),
    resultGraceMs: ms("resultGraceMs", 30_000),
    cancelTimeoutMs: ms("cancelTimeoutMs", 60_000),
    pace,
  };
}

type TimeOption = Extract<keyof RouterClientOptions, `${string}Ms`>;

/** A time in milliseconds that a timer can wait for. */
export function checkedMs(name: string, value: number): number {
  if (!Number.isFinite(value) || value < 1 || value > maxTimerMs) {
    throw new ExecutionOptionError(name, `is ${value}; give 1 to ${maxTimerMs} milliseconds`);
  }
  return value;
}

/** Certificates as they were given. */
export function checkedCa({ ca, caFile }: Pick<RouterClientOptions, "ca" | "caFile">): {
  ca: string | undefined;
  caFile: string | undefined;
} {
  if (ca !== undefined && caFile !== undefined)
    throw new ExecutionOptionError("ca", "and caFile exclude each other");
  const problem = ca === undefined ? undefined : bundleProblem(ca);
  if (problem !== undefined) throw new ExecutionOptionError("ca", problem);
  return { ca, caFile };
}

/** Where the client certificate and its key lie: both are given, or none. */
export function checkedClientFiles({
  clientCertFile: certFile,
  clientKeyFile: keyFile,
}: Pick<RouterClientOptions, "clientCertFile" | "clientKeyFile">): ClientCertificateFiles | undefined {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined)
    throw new ExecutionOptionError("clientCertFile", "is missing beside clientKeyFile");
  if (keyFile === undefined)
    throw new ExecutionOptionError("clientKeyFile", "is missing beside clientCertFile");
  return { certFile, keyFile };
}
