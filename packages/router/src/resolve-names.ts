// Looks a name up at one DNS server, for discovery where the system's way is not wanted.
import { askDns, dnsResolver } from "./backend/system-names.ts";

/** All addresses (A and AAAA) of a name, from the server at `address:port`. Rejects unless both questions were answered, and one with addresses. */
export function resolveAt(server: { readonly host: string; readonly port: number }) {
  const address = server.host.includes(":") ? `[${server.host}]` : server.host;
  const resolver = dnsResolver([`${address}:${server.port}`]);
  // Half an answer would take the other half's owners away.
  return (name: string): Promise<readonly string[]> => askDns(resolver, name, { isWhole: true });
}
