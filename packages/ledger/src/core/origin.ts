/** Origins: how a ledger names the owners of ids. */

/** The most bytes that an origin may have. */
const MAX_ORIGIN_BYTES = 1_024;

/**
 * What is wrong with an origin, as words that go behind "is"; undefined if nothing. `http://` and an authority without `/ @ ? #`, white
 * space, and what no record could hold (control characters, halves of a surrogate pair; they are six bytes in JSON, which would make
 * records too long to be read again). https is refused, since the transport is plain and must not send a credential in the clear by surprise.
 */
export function originProblem(origin: string): string | undefined {
  if (Buffer.byteLength(origin) > MAX_ORIGIN_BYTES) return `longer than ${MAX_ORIGIN_BYTES} bytes`;
  if (!origin.startsWith("http://")) return "no http:// origin";
  const authority = origin.slice("http://".length);
  if (authority === "") return "without a host";
  if (/[/@?#\s\p{Cc}\p{Cs}]/u.test(authority)) return "more than a scheme, a host and a port";
  return undefined;
}
