// How a client tells that a node is leaving and did not run the request. Neither a 503 alone nor a 503 with
// `Connection: close` is enough: an application's own 503 can travel on a closing connection and was executed.

/** Response headers as undici hands them out: lower-case names. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A marker of one's own: asked for each 503 with a declared body of at most 512 bytes, with that whole body. */
export type MarkerFn = (status: number, headers: ResponseHeaders, body: string) => boolean;

/** Longest body that can be a refusal. Also what is held back at most before the caller sees a response. */
const MARKER_MAX_BYTES = 512;

/** A way to recognise a drain refusal. */
export interface DrainMarker {
  /**
   * From the headers alone: `yes` it is one, `no` it cannot be, or the `body` has to be seen (it is small, and has
   * to be complete).
   */
  weigh(status: number, headers: ResponseHeaders): "yes" | "no" | "body";
  /** With the complete body; only after `weigh` said `body`. */
  matches(status: number, headers: ResponseHeaders, body: string): boolean;
}

/** The value of a header with one value; several are joined as HTTP allows. */
export function headerOf(headers: ResponseHeaders, name: string): string {
  const value = headers[name];
  return value === undefined ? "" : typeof value === "string" ? value : value.join(", ");
}

/** True when a comma-separated header holds the token, in any case. */
export function hasToken(value: string, token: string): boolean {
  return value.split(",").some((part) => part.trim().toLowerCase() === token);
}

/** True for `application/json`, with or without parameters, and for `+json` types. */
export function isJson(headers: ResponseHeaders): boolean {
  const type = (headerOf(headers, "content-type").split(";", 1)[0] ?? "").trim().toLowerCase();
  return type === "application/json" || type.endsWith("+json");
}

/** Whether the declared length is known and small enough to be held back. */
export function isSmall(headers: ResponseHeaders): boolean {
  const length = headerOf(headers, "content-length");
  return /^\d{1,3}$/.test(length) && Number(length) <= MARKER_MAX_BYTES;
}

/** True for `{"draining": true}` with whatever else beside it. */
function saysDraining(body: string): boolean {
  if (body.length > MARKER_MAX_BYTES) return false;
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && "draining" in value && value.draining === true;
  } catch {
    return false;
  }
}

/** @param closing whether `Connection: close` is required */
function bodyMarker(closing: boolean): DrainMarker {
  const passes = (status: number, headers: ResponseHeaders): boolean =>
    status === 503 &&
    isSmall(headers) &&
    isJson(headers) &&
    (!closing || hasToken(headerOf(headers, "connection"), "close"));
  return {
    weigh: (status, headers) => (passes(status, headers) ? "body" : "no"),
    matches: (status, headers, body) => passes(status, headers) && saysDraining(body),
  };
}

/**
 * `strict`: 503, `Connection: close`, JSON, and a whole body of at most 512 bytes with `draining: true`. `body`: the
 * same without `Connection: close`, for a proxy that strips it. `header:NAME=VALUE`: a 503 with that header.
 * @returns undefined for anything else
 */
export function parseMarker(marker: string | MarkerFn): DrainMarker | undefined {
  if (typeof marker === "function") {
    return {
      weigh: (status, headers) => (status === 503 && isSmall(headers) ? "body" : "no"),
      matches: (status, headers, body) => marker(status, headers, body),
    };
  }
  if (marker === "strict") return bodyMarker(true);
  if (marker === "body") return bodyMarker(false);
  const [, name, value] = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(.+)$/.exec(marker) ?? [];
  if (name === undefined || value === undefined) return undefined;
  const key = name.toLowerCase();
  return {
    weigh: (status, headers) => (status === 503 && headerOf(headers, key) === value ? "yes" : "no"),
    matches: (status, headers) => status === 503 && headerOf(headers, key) === value,
  };
}
