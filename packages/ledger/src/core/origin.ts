/** Origins: how a ledger names the owners of ids. */

/** The most bytes that an origin may have. */
export const MAX_ORIGIN_BYTES = 1_024;

/**
 * What is wrong with an origin, as words that go behind "is"; undefined if nothing. `http://` and an authority without `/ @ ? #` and
 * white space; https is refused, since the transport is plain and must not send a credential in the clear by surprise.
 */
export function originProblem(origin: string): string | undefined {
  if (Buffer.byteLength(origin) > MAX_ORIGIN_BYTES) return `longer than ${MAX_ORIGIN_BYTES} bytes`;
  if (!origin.startsWith("http://")) return "no http:// origin";
  const authority = origin.slice("http://".length);
  if (authority === "") return "without a host";
  if (/[/@?#\s]/u.test(authority)) return "more than a scheme, a host and a port";
  return undefined;
}
