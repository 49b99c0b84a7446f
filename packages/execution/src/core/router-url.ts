// The URL of a router: http or https, a host, perhaps a path before /v1; nothing that could carry a credential or be read
// differently by two parsers.

/** A router's URL, ready for use. */
export interface RouterUrl {
  /** Scheme, host and port. */
  readonly origin: string;
  /** What stands before `/v1`, without a slash at its end; mostly empty. */
  readonly prefix: string;
  readonly secure: boolean;
  /** Whether the host is this machine: `localhost`, 127.0.0.0/8 or `[::1]`. */
  readonly loopback: boolean;
}

/** The parts of a router's URL, or undefined: no host, user info, a query or fragment (even empty), or another scheme. */
export function parseRouterUrl(text: string): RouterUrl | undefined {
  const plain = /^https?:\/\/[^/?#@\\\s]+(?:\/[^?#\\\s]*)?$/i;
  if (!plain.test(text) || !URL.canParse(text)) return undefined;
  const { origin, pathname, protocol, hostname } = new URL(text);
  return {
    origin,
    prefix: pathname.replace(/\/+$/, ""),
    secure: protocol === "https:",
    loopback: hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname),
  };
}
