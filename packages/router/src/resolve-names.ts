// Looks a name up at one DNS server, for discovery where the system's way is not wanted.
import { Resolver } from "node:dns/promises";

/** How long the server is waited for, each of two times. */
const timeoutMs = 900;

/** All addresses (A and AAAA) of a name, from the server at `address:port`. Rejects unless both questions were answered, and one with addresses. */
export function resolveAt(server: { readonly host: string; readonly port: number }) {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 });
  resolver.setServers([
    server.host.includes(":") ? `[${server.host}]:${server.port}` : `${server.host}:${server.port}`,
  ]);
  return async (name: string): Promise<readonly string[]> => {
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found: string[] = [];
    for (const answer of [four, six]) {
      if (answer.status === "fulfilled") found.push(...answer.value);
      // Half an answer would take the other half's owners away.
      else if (!isNone(answer.reason)) throw answer.reason;
    }
    // Nothing at all is a gap rather than a plane without dispatchers.
    if (found.length === 0) throw (four as PromiseRejectedResult).reason;
    return found;
  };
}

/** The name has no addresses of this kind. */
function isNone(error: NodeJS.ErrnoException): boolean {
  return error.code === "ENODATA" || error.code === "ENOTFOUND";
}
