// One request through the table of routes: find the route, hand it the request, write its answer.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { BodyTooLargeError } from "./errors.ts";

/** A request, its body not yet read. */
export interface HttpRequest {
  readonly method: string;
  /** The path without its query, as sent: nothing is decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** What a route's trailing `/*` stood for, without the slash before it; empty for exact routes. */
  readonly rest: string;
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the client goes away before the answer. */
  readonly signal: AbortSignal;
  /** Reads the whole body. Rejects with {@link BodyTooLargeError} past the server's bound, which answers 413. */
  body(): Promise<Buffer>;
  readonly raw: IncomingMessage;
}

/**
 * An answer. `json` is written as JSON with its content type, `body` as it is: a stream as it comes, and when it breaks
 * the connection is cut, so that nobody takes a part for the whole.
 */
export interface HttpAnswer {
  status: number;
  headers?: Readonly<Record<string, string | readonly string[]>>;
  json?: unknown;
  body?: string | Uint8Array | Readable;
}

/** One line of the table. */
export interface Route {
  /** `GET` also answers HEAD; `*` answers any method. */
  method: string;
  /** Exact (`/metrics`), or everything below with a trailing `/*`. The first route that fits wins. */
  path: string;
  handle(request: HttpRequest): HttpAnswer | Promise<HttpAnswer>;
}

/** What {@link answerRequest} needs of a server's options. */
export interface AnswerOptions {
  routes: readonly Route[];
  maxBodyBytes: number;
  onError: (error: unknown, request: { method: string; path: string }) => void;
}

/** Answers one request; never rejects. */
export async function answerRequest(
  options: AnswerOptions,
  raw: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { routes, maxBodyBytes, onError } = options;
  const method = raw.method ?? "GET";
  const [path = "/", query = ""] = splitOnce(raw.url ?? "/", "?");
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const fitting = routes.filter((route) => fits(route.path, path));
  const route = fitting.find(
    (each) => each.method === method || each.method === "*" || (method === "HEAD" && each.method === "GET"),
  );
  if (route === undefined) {
    const allow = [...new Set(fitting.map((each) => each.method))].join(", ");
    if (fitting.length === 0) write(response, { status: 404, json: { error: "not_found" } });
    else write(response, { status: 405, headers: { allow }, json: { error: "method_not_allowed" } });
    return;
  }
  let body: Promise<Buffer> | undefined;
  try {
    const answer = await route.handle({
      method,
      path,
      query: new URLSearchParams(query),
      rest: route.path.endsWith("/*") ? path.slice(route.path.length - 1) : "",
      headers: raw.headers,
      signal: gone.signal,
      body: () => {
        body ??= readBody(raw, maxBodyBytes);
        return body;
      },
      raw,
    });
    write(response, answer);
  } catch (error) {
    if (error instanceof BodyTooLargeError) {
      write(response, { status: 413, headers: { connection: "close" }, json: { error: "body_too_large" } });
    } else {
      onError(error, { method, path });
      write(response, { status: 500, json: { error: "internal" } });
    }
  }
}

function fits(pattern: string, path: string): boolean {
  return pattern.endsWith("/*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

async function readBody(raw: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(raw.headers["content-length"] ?? 0) > maxBytes) throw new BodyTooLargeError(maxBytes);
  const chunks: Buffer[] = [];
  let length = 0;
  // `for await` would destroy the socket on the way out and with it the 413.
  await new Promise<void>((resolve, reject) => {
    raw.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) reject(new BodyTooLargeError(maxBytes));
      else chunks.push(chunk);
    });
    raw.once("end", resolve);
    raw.once("error", reject);
  });
  return Buffer.concat(chunks);
}

function write(response: ServerResponse, { status, headers = {}, json, body }: HttpAnswer): void {
  const content = json === undefined ? (body ?? "") : JSON.stringify(json);
  if (response.headersSent || response.destroyed) {
    if (content instanceof Readable) content.on("error", () => undefined).destroy();
    return;
  }
  if (content instanceof Readable) {
    response.writeHead(status, plain(headers));
    // Its failure has cut the connection: there is nobody else to tell.
    pipeline(content, response, () => undefined);
    return;
  }
  const bytes = Buffer.from(content);
  const type = json === undefined ? {} : { "content-type": "application/json" };
  response.writeHead(status, { ...type, ...plain(headers), "content-length": bytes.length }).end(bytes);
}

/** node:http wants lists that it may change. */
function plain(headers: NonNullable<HttpAnswer["headers"]>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
}
