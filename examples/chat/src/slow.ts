// An answer that takes its time, to watch what a drain does to requests in flight.
import { refusal } from "./answers.ts";

const maxDelayMs = 60_000;
const maxChunkCount = 1_000;

/** A query parameter as a whole number from 0 (or `least`) to `most`, or undefined when it is none. */
function wholeNumber(text: string | null, fallback: number, least: number, most: number): number | undefined {
  if (text === null) return fallback;
  const value = Number(text);
  return /^\d{1,9}$/.test(text) && value >= least && value <= most ? value : undefined;
}

/**
 * `GET /slow?ms=3000`: waits, then answers. With `&chunks=10` the head comes at once and the chunks, numbered lines,
 * are spread evenly over the time.
 */
export async function slow(url: URL): Promise<Response> {
  const delayMs = wholeNumber(url.searchParams.get("ms"), 1_000, 0, maxDelayMs);
  const chunkCount = wholeNumber(url.searchParams.get("chunks"), 1, 1, maxChunkCount);
  if (delayMs === undefined) return refusal(400, `ms is a whole number from 0 to ${maxDelayMs}`);
  if (chunkCount === undefined) return refusal(400, `chunks is a whole number from 1 to ${maxChunkCount}`);

  const pauseMs = delayMs / chunkCount;
  const headers = { "content-type": "text/plain; charset=utf-8" };
  if (chunkCount === 1) {
    await scheduler.wait(pauseMs);
    return new Response("1\n", { headers });
  }
  const encoder = new TextEncoder();
  let sent = 0;
  const body = new ReadableStream({
    async pull(controller) {
      await scheduler.wait(pauseMs);
      sent += 1;
      controller.enqueue(encoder.encode(`${sent}\n`));
      if (sent === chunkCount) controller.close();
    },
  });
  return new Response(body, { headers });
}
