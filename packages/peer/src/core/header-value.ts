import type { HeaderPairs } from "./signed-head.ts";

/** The values of a header in the order received. @param name in lower case */
export function headerValues(headers: HeaderPairs, name: string): string[] {
  return headers.filter(([given]) => given.toLowerCase() === name).map(([, value]) => value);
}

/** The value of a header that is given once; undefined when it is absent or given twice. @param name in lower case */
export function singleHeader(headers: HeaderPairs, name: string): string | undefined {
  const values = headerValues(headers, name);
  return values.length === 1 ? values[0] : undefined;
}
