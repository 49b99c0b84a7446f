/** Work on many items, some at a time, answered in the items' order. */

/** @param limitCount how many are worked on at once at most */
export async function* inParallel<T, R>(
  items: AsyncIterable<T>,
  limitCount: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  const start = (item: T): void => {
    const result = work(item);
    // Its failure is met when its turn comes; until then it must not count as one that nobody handles.
    result.catch(() => undefined);
    running.push(result);
  };
  for await (const item of items) {
    start(item);
    const first = running.length >= limitCount ? running.shift() : undefined;
    if (first !== undefined) yield await first;
  }
  for (const each of running) yield await each;
}
