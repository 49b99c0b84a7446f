// One request of the operator API, given to a cell through the engine's socket for peers.
import { type IncomingMessage, request } from "node:http";
import type { HttpAnswer } from "@cellkit/daemon";
import { reservedFieldPrefixes } from "@cellkit/engine";

/** Fields of one connection (RFC 9110 section 7.6.1), and the question whether a body may be sent. */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** What a cell is asked. */
export interface CellQuestion {
  readonly scope: string;
  /** What came in; the cell sees its method, URL and fields. */
  readonly incoming: IncomingMessage;
  /** Its body, if that was read already. */
  readonly body: Uint8Array | undefined;
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
}

/** Gives a request to a cell, and answers what it answers, as a stream. 502 when no answer came: it may have run. */
export async function askCell(
  socketPath: string,
  { scope, incoming, body, signal }: CellQuestion,
): Promise<HttpAnswer> {
  const url = incoming.url ?? "/";
  const asked = request({
    socketPath,
    path: url.startsWith("/") ? `http://${incoming.headers.host ?? "cell"}${url}` : url,
    method: incoming.method ?? "GET",
    // The connection is for this request only, but workerd is not to close it: the last, empty write could come after that.
    headers: [...kept(incoming.rawHeaders), "x-cells-scope", scope, "connection", "keep-alive"],
    agent: false,
    signal,
  });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  asked.once("response", resolve);
  asked.on("error", reject);
  if (body === undefined) incoming.pipe(asked);
  else asked.end(body);
  try {
    const answer = await promise;
    return { status: answer.statusCode ?? 502, headers: fieldsOf(answer.rawHeaders), body: answer };
  } catch {
    // workerd ended meanwhile, or the caller is gone.
    return { status: 502, headers: { "cellkit-outcome": "unknown" }, json: { error: "RuntimeFailed" } };
  }
}

/** Name and value pairs, flat, without what belongs to the connection or to nodes. */
function kept(rawHeaders: readonly string[]): string[] {
  const fields: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? "";
    if (hopByHop.has(name) || reservedFieldPrefixes.some((prefix) => name.startsWith(prefix))) continue;
    fields.push(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  }
  return fields;
}

/** Fields of the cell's answer; the engine has taken out what only nodes may say, and said what became of the call. */
function fieldsOf(rawHeaders: readonly string[]): Record<string, string[]> {
  const fields = new Map<string, string[]>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? "";
    if (!hopByHop.has(name)) fields.set(name, [...(fields.get(name) ?? []), rawHeaders[i + 1] ?? ""]);
  }
  return Object.fromEntries(fields);
}
