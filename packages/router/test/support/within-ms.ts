import { TestError } from "./test-error.ts";

/** What the work comes to, if it ends in time. */
export async function withinMs<T>(boundMs: number, what: string, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new TestError(`no ${what} within ${boundMs} ms`)), boundMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
