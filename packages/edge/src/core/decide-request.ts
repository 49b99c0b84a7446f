// What becomes of a request, from its head alone. The order is that of the original: syntax, the allowlist, the declared
// length. What would be read in two ways is refused, although the HTTP parser in front may have taken it.
import { type AllowedRoute, findRoute } from "./allowlist.ts";
import { connectionOptions, forwardedFields, stripsEssentials, valuesOf } from "./header-fields.ts";
import type { Refusal } from "./refusal.ts";

/** The most that a request body may be. */
export const maxBodyBytes = 65_536;

/** The most that a request head may be, line ends and all. */
export const maxHeadBytes = 16_384;

/** A request's head, as the parser gives it. */
export interface RequestHead {
  readonly method: string;
  /** The request target as sent; nothing is decoded. */
  readonly target: string;
  /** `1.1` and the like. */
  readonly version: string;
  /** Names and values in turn, as sent. */
  readonly fields: readonly string[];
}

/** What is to be done with it. */
export type Decision =
  | {
      readonly kind: "forward";
      readonly route: AllowedRoute;
      /** What the backend gets besides `Host` and the length. */
      readonly fields: readonly string[];
      /** A body may follow. Where it may not, none was declared. */
      readonly hasBody: boolean;
    }
  | {
      readonly kind: "refuse";
      readonly refusal: Refusal;
      /** The connection is of no further use: what follows on it is unsure, or not wanted. */
      readonly closes: boolean;
    };

/** @param routes the listener's {@link AllowedRoute}s */
export function decideRequest(routes: readonly AllowedRoute[], head: RequestHead): Decision {
  const { method, target, fields } = head;
  if (headBytesOf(head) > maxHeadBytes) return refuse("head-too-large", true);
  const framing = framingOf(head);
  const options = connectionOptions(fields);
  if (framing === undefined || stripsEssentials(options)) return refuse("malformed", true);
  const hasBody = framing === "chunked" || framing > 0;
  const route = findRoute(routes, method, target);
  if (route === undefined || valuesOf(fields, "upgrade").length > 0) return refuse("no-route", hasBody);
  // A backend that ignores the body of a GET would take it for the next request.
  if (hasBody && route.method !== "POST") return refuse("malformed", true);
  if (framing !== "chunked" && framing > maxBodyBytes) return refuse("declared-too-large", true);
  const expectations = valuesOf(fields, "expect");
  if (expectations.some((value) => value.toLowerCase() !== "100-continue"))
    return refuse("expectation", true);
  return { kind: "forward", route, fields: forwardedFields(fields, options), hasBody };
}

function refuse(refusal: Refusal, closes: boolean): Decision {
  return { kind: "refuse", refusal, closes };
}

/** With the spaces and line ends that the parser in front does not count. */
function headBytesOf({ method, target, version, fields }: RequestHead): number {
  let bytes = method.length + target.length + version.length + " HTTP/".length + 1 + "\r\n\r\n".length;
  for (let at = 0; at < fields.length; at += 2) {
    bytes += (fields[at] as string).length + (fields[at + 1] as string).length + ": \r\n".length;
  }
  return bytes;
}

/** The declared length, or `chunked`; undefined where it cannot be told for certain (RFC 9112 sections 3.2 and 6). */
function framingOf({ version, fields }: RequestHead): number | "chunked" | undefined {
  const hosts = valuesOf(fields, "host");
  const lengths = valuesOf(fields, "content-length");
  const codings = valuesOf(fields, "transfer-encoding");
  if (version !== "1.1" && version !== "1.0") return undefined;
  if (hosts.length > 1 || (version === "1.1" && hosts.length === 0)) return undefined;
  if (hosts.some((host) => !/^[A-Za-z0-9._~:[\]-]*$/.test(host))) return undefined;
  if (lengths.length + codings.length > 1) return undefined;
  const [coding] = codings;
  if (coding !== undefined)
    return version === "1.1" && coding.toLowerCase() === "chunked" ? "chunked" : undefined;
  const [length = "0"] = lengths;
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}
