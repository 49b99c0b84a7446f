// Where a dial goes and with which headers: the caller's options, evaluated for one dial.
import { Headers } from "undici";
import type { ResolvedSocketOptions } from "./cell-socket-defaults.ts";
import type { SocketTarget } from "./cell-socket-options.ts";
import { ConfigurationError } from "./errors.ts";

/** Path and headers of one upgrade request. */
export interface Prepared {
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Evaluates target and headers. Rejects with what the caller's functions threw, or a {@link ConfigurationError}. */
export async function prepare(
  target: SocketTarget,
  headers: ResolvedSocketOptions["headers"],
  authority: URL,
): Promise<Prepared> {
  const path = pathOf(typeof target === "function" ? await target() : target, authority);
  const init = typeof headers === "function" ? await headers() : headers;
  return { path, headers: Object.fromEntries(new Headers(init)) };
}

/**
 * The path and query of a target.
 *
 * @throws ConfigurationError (`CELLKIT_CLIENT_CONFIG`) for a URL of another host: the fleet only leads to its own
 */
export function pathOf(target: string, authority: URL): string {
  const base = new URL(authority);
  base.pathname = "/";
  const url = URL.canParse(target, base.href) ? new URL(target, base) : undefined;
  if (url === undefined) throw new ConfigurationError(`"${target}" is not a path and not a URL`);
  if (url.host !== base.host && url.host !== `${base.hostname}:${base.port || defaultPort(base)}`) {
    throw new ConfigurationError(
      `the socket's target is on ${url.host}, but this fleet is ${base.host}; give a path, or a fleet for that host`,
    );
  }
  return url.pathname + url.search;
}

function defaultPort(url: URL): string {
  return url.protocol === "https:" ? "443" : "80";
}
