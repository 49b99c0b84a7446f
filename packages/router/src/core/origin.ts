// Origins of dispatchers (execution API, section 4.1). The text is the identity: ledgers store it and pins are compared with it.

/** Where a dispatcher is. */
export interface BackendOrigin {
  /** `http://host[:port]`, without a slash at its end. */
  readonly origin: string;
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The most bytes that an origin may have; a ledger holds no longer one. */
const maxOriginBytes = 1024;

/** An address as a message may show it: without what stands before an `@`, which may be a password. */
export function printableAddress(text: string): string {
  return JSON.stringify(text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, "$1…@"));
}

/** Reads an origin as it is configured, or says what is wrong with it, as words that go behind "is". */
export function parseOrigin(text: string): BackendOrigin | { readonly problem: string } {
  const origin = text.replace(/\/+$/, "");
  if (text.startsWith("https://"))
    return {
      problem:
        "https, which no dispatcher is reached by: write http:// and the port of its plain HTTP, and see to the network between, where the backend token goes as it is",
    };
  if (!text.startsWith("http://")) return { problem: "no http:// origin" };
  if (Buffer.byteLength(origin) > maxOriginBytes) return { problem: `longer than ${maxOriginBytes} bytes` };
  const authority = origin.slice("http://".length);
  if (authority === "" || origin === "http:") return { problem: "without a host" };
  if (/[/@?#\s\p{Cc}\p{Cs}]/u.test(authority)) return { problem: "more than a scheme, a host and a port" };
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(authority);
  const port = Number(match?.[3] ?? 80);
  if (match === null || port < 1 || port > 65_535) return { problem: "without a usable host and port" };
  return { origin, host: (match[1] ?? match[2]) as string, port };
}
