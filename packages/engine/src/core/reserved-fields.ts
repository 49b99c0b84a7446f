/**
 * Beginnings of names, in lower case, of header fields that only the node and its peers may write. The entry module takes
 * them out of answers; the listener before `publicSocket` takes them out of requests, where it is nearly free.
 */
export const reservedFieldPrefixes = ["x-cells-", "x-celld-", "cellkit-"] as const;
