// Which fields of a message travel on. Fields are flat lists of names and values, as they came and in that order.

/** Fields of one connection, never of the next (RFC 9110 section 7.6.1, and the names that old clients use). */
const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * What the backend gets from the edge itself (`Host`, the length), what would make something on the way think it may send a
 * POST again, what says where a request came from, and a wish for compression, which nobody here undoes.
 */
const removedFromRequests = new Set([
  ...hopByHop,
  "host",
  "content-length",
  "expect",
  "cookie",
  "idempotency-key",
  "x-idempotency-key",
  "forwarded",
  "accept-encoding",
]);

const removedFromAnswers = new Set(hopByHop);

/** Fields that a client may not have removed by naming them in `Connection`: they decide what the request means. */
const essential = new Set(["authorization", "content-length", "content-type", "host", "prefer"]);

/** The lower-case names in the values of `Connection` fields. */
export function connectionOptions(fields: readonly string[]): Set<string> {
  const options = new Set<string>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    if (!isNamed(fields[at] as string, "connection")) continue;
    for (const option of (fields[at + 1] as string).split(",")) {
      const name = option.trim().toLowerCase();
      if (name !== "") options.add(name);
    }
  }
  return options;
}

/** Whether one of the options would strip a field that decides what the request means. */
export function stripsEssentials(options: ReadonlySet<string>): boolean {
  for (const option of options) if (essential.has(option) || option.startsWith("x-celln-")) return true;
  return false;
}

/** The fields of a request that go to the backend. */
export function forwardedFields(fields: readonly string[], options: ReadonlySet<string>): string[] {
  return without(
    fields,
    (name) => removedFromRequests.has(name) || name.startsWith("x-forwarded-") || options.has(name),
  );
}

/** The fields of the backend's answer that go to the client. */
export function answeredFields(fields: readonly string[]): string[] {
  const options = connectionOptions(fields);
  return without(fields, (name) => removedFromAnswers.has(name) || options.has(name));
}

/**
 * Whether the end of an answer shows: by its length, or by chunks that nothing else was done to. One that ends with its connection
 * looks whole when it broke off, and a coding that nobody here undoes is not passed on as what is inside (RFC 9112 sections 6.1, 6.3).
 */
export function hasCertainEnd(status: number, fields: readonly string[]): boolean {
  const codings = valuesOf(fields, "transfer-encoding");
  if (codings.length > 0) return codings.length === 1 && codings[0]?.trim().toLowerCase() === "chunked";
  return status === 204 || status === 304 || valuesOf(fields, "content-length").length > 0;
}

/** All values of a field, in order. `name` in lower case. */
export function valuesOf(fields: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    if (isNamed(fields[at] as string, name)) values.push(fields[at + 1] as string);
  }
  return values;
}

function isNamed(name: string, lowerCase: string): boolean {
  return name.length === lowerCase.length && name.toLowerCase() === lowerCase;
}

function without(fields: readonly string[], isRemoved: (lowerCaseName: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!isRemoved(name.toLowerCase())) kept.push(name, fields[at + 1] as string);
  }
  return kept;
}
