import type { Dispatcher } from "undici";

type Headers = Dispatcher.DispatchOptions["headers"];

/** What {@link scanHeaders} found, as bits. */
export const HAS_HOST = 1;
export const HAS_KEY = 2;
/** An iterable that cannot be counted on to be iterated twice. */
export const IS_ITERABLE = 4;

/** Looks over request headers in whichever form undici takes. */
export function scanHeaders(headers: Headers): number {
  if (headers === null || headers === undefined) return 0;
  let found = 0;
  if (Array.isArray(headers)) {
    for (let index = 0; index < headers.length; index += 2) found |= bitOf(String(headers[index]));
    return found;
  }
  if (Symbol.iterator in headers) return IS_ITERABLE;
  for (const name in headers) found |= bitOf(name);
  return found;
}

function bitOf(name: string): number {
  if (name.length === 4) return name.toLowerCase() === "host" ? HAS_HOST : 0;
  if (name.length === 15) return name.toLowerCase() === "idempotency-key" ? HAS_KEY : 0;
  return 0;
}

/** A flat list that can be sent any number of times, without `host`: every node sees the authority. */
export function flattenHeaders(headers: Headers): string[] {
  const flat: string[] = [];
  const add = (name: string, value: unknown): void => {
    if (value !== undefined && name.toLowerCase() !== "host") flat.push(name, value as string);
  };
  if (headers === null || headers === undefined) return flat;
  if (Array.isArray(headers)) {
    for (let index = 0; index < headers.length; index += 2) add(String(headers[index]), headers[index + 1]);
  } else if (Symbol.iterator in headers) {
    for (const [name, value] of headers as Iterable<[string, unknown]>) add(name, value);
  } else {
    for (const [name, value] of Object.entries(headers)) add(name, value);
  }
  return flat;
}
