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

/** Whether the head says that a body follows: a length other than 0, or any transfer coding. */
export function declaresBody(headers: HeaderPairs): boolean {
  return headers.some(([given, value]) => {
    const name = given.toLowerCase();
    return name === "transfer-encoding" || (name === "content-length" && !/^0+$/.test(value));
  });
}
