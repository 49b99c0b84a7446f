// Answers as routers and dispatchers of the execution plane write them (execution API, section 2.1).
import { stringifyJson } from "@cellkit/execution";

/** A status and a JSON body. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export function refusal(status: number, error: string, more: Readonly<Record<string, unknown>> = {}): Answer {
  return { status, body: { error, ...more } };
}

/** The bytes of an answer: always `OK`, always `Connection: close`, always with a length. */
export function renderAnswer({ status, body }: Answer, lengthDifferenceBytes = 0): Buffer {
  const text = stringifyJson(body);
  const length = Math.max(0, Buffer.byteLength(text) + lengthDifferenceBytes);
  const head = `HTTP/1.1 ${status} OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`;
  return Buffer.from(head + text);
}
