/** A bucket whose calls a test can watch, hold up or answer itself. */
import type { Bucket } from "@cellkit/bucket";

/** The calls of a bucket, each as it is or in a test's own way. */
export type Calls = Pick<Bucket, "get" | "put" | "createIfAbsent" | "replaceIf" | "delete" | "list">;

/** @param change the calls to replace; what it leaves out goes to `inner` */
export function seam(inner: Bucket, change: Partial<Calls>): Bucket {
  return {
    url: inner.url,
    get: (key, options) => inner.get(key, options),
    put: (...call) => inner.put(...call),
    createIfAbsent: (...call) => inner.createIfAbsent(...call),
    replaceIf: (...call) => inner.replaceIf(...call),
    delete: (...call) => inner.delete(...call),
    list: inner.list.bind(inner),
    close: () => inner.close(),
    [Symbol.asyncDispose]: () => inner.close(),
    ...change,
  };
}
