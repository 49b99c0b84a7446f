// Requests to an engine's public socket.
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { NodeEngine } from "../../src/index.ts";

/** What can be asked: an engine, or the socket of one. */
export type Askable = Pick<NodeEngine, "publicSocket">;

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What a request is made of. */
export interface Ask {
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Uint8Array;
  readonly timeoutMs?: number;
}

/** Sends one request on a connection of its own. */
export async function ask(engine: Askable, path: string, options: Ask = {}): Promise<Answer> {
  const { publicSocket: socketPath } = engine;
  if (socketPath === undefined) throw new TypeError("the engine serves nothing");
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const { method = "GET", headers = {}, body, timeoutMs = 60_000 } = options;
    const signal = AbortSignal.timeout(timeoutMs);
    const sent = request({
      socketPath,
      path,
      method,
      headers: { host: "cells.test", ...headers },
      agent: false,
      signal,
    });
    sent.once("response", resolve);
    sent.once("error", reject);
    sent.end(body);
  });
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

/** Asks for JSON and expects 200. */
export async function askJson<T>(engine: Askable, path: string, options?: Ask): Promise<T> {
  const { status, text } = await ask(engine, path, options);
  if (status !== 200) throw new TypeError(`${path} answered ${status}: ${text}`);
  return JSON.parse(text) as T;
}
