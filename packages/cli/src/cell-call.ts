// What `cellkit call` does once its options are read: makes the request, and brings the answer to where it belongs.
import { openAsBlob } from "node:fs";
import { STATUS_CODES } from "node:http";
import { createInterface, type Interface } from "node:readline";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type {
  CellAddress,
  FleetKey,
  FleetStore,
  NodeDirectory,
  PeerClient,
  RecordsMode,
} from "@cellkit/peer";
import { CallInputError } from "./errors.ts";

/** A request as flags describe it. */
export interface CallRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  /** Text, `@FILE`, or `@-` for standard input; undefined: no body. */
  readonly data: string | undefined;
}

/** What is called, and how it is reached. */
export interface CallTarget {
  readonly store: FleetStore;
  readonly cell: CellAddress;
  readonly key: FleetKey;
  readonly script: string | undefined;
  readonly records: RecordsMode;
  readonly signal: AbortSignal;
}

/** What can be sent: text and files again and again, standard input once. */
export type CallBody = Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;

/** Reads `NAME: VALUE` lines. @throws CallInputError (`CELLKIT_CLI_CALL_INPUT`) */
export function parseHeaders(lines: readonly string[]): Headers {
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    // Nothing of it is shown: without a name it may be a secret as a whole.
    if (colon < 0) throw new CallInputError("--header: must be NAME: VALUE, and one has no colon");
    try {
      headers.append(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
    } catch (cause) {
      const name = line.slice(0, Math.max(0, colon)).slice(0, 100);
      throw new CallInputError(`--header ${JSON.stringify(name)}: must be NAME: VALUE`, { cause });
    }
  }
  return headers;
}

/** The body that `--data` names. @throws CallInputError (`CELLKIT_CLI_CALL_INPUT`) for a file that cannot be read */
export async function openData(data: string | undefined, input: Readable): Promise<CallBody | undefined> {
  if (data === undefined) return undefined;
  if (data === "@-") return Readable.toWeb(input) as ReadableStream<Uint8Array>;
  // Bytes, so that no content type is made up.
  if (!data.startsWith("@")) return new TextEncoder().encode(data);
  const file = data.slice(1);
  try {
    return await openAsBlob(file);
  } catch (cause) {
    throw new CallInputError(`--data @${file}: the file cannot be read`, { cause });
  }
}

/** A client for one call. @param directory whose last answer it may use */
export async function openClient(target: CallTarget, directory?: NodeDirectory): Promise<PeerClient> {
  const { PeerClient } = await import("@cellkit/peer");
  const { store, key, script, records } = target;
  return new PeerClient({
    store,
    key,
    self: callerName,
    records,
    ...(script === undefined ? {} : { script }),
    ...(directory === undefined ? {} : { directory }),
  });
}

/** Calls a cell, in the generation of the protocol that the fleet speaks. @throws what @cellkit/peer throws */
export async function callCell(
  target: CallTarget,
  call: CallRequest,
  body: CallBody | undefined,
): Promise<Response> {
  const { NodeDirectory } = await import("@cellkit/peer");
  const { store, cell, key, script, signal } = target;
  const { url, method, headers } = call;
  const request = (): Request =>
    new Request(url, {
      method,
      headers,
      redirect: "manual",
      signal,
      ...(body === undefined ? {} : { body, duplex: "half" }),
    });
  // As fresh as the client's own would be.
  const directory = new NodeDirectory(store, { cacheMs: 500 });
  const { live } = await directory.list({ signal });
  const speaks = (version: number): boolean => live.some(({ peerProtocol }) => peerProtocol === version);
  if (!speaks(5) && speaks(2)) {
    const { callOlder } = await import("./older-call.ts");
    const answer = await callOlder(store, {
      cell,
      request,
      repeatable: !(body instanceof ReadableStream),
      key,
      script,
      signal,
    });
    if (answer.kind === "response") return answer.response;
    throw new CallInputError(
      "the cell answered with a WebSocket, which is not reached in protocol 2: use a node's public address",
    );
  }
  const client = await openClient(target, directory);
  const response = await client.fetch(cell, request());
  const { body: stream } = response;
  // The tunnel stays until the body has been read.
  const closing = async (): Promise<void> => client.close();
  if (stream === null) {
    await closing();
    return response;
  }
  const whole = stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({ flush: () => void closing() }),
  );
  return new Response(whole, { status: response.status, headers: response.headers });
}

/** The identity that a tool signs with. */
const callerName = "diagnostic";

/**
 * Writes an answer: with `include` its status and headers before it, as HTTP does. On a terminal a body that does not end its
 * last line gets a line break, so that the shell's prompt has a line of its own.
 */
export async function writeAnswer(
  response: Response,
  include: boolean,
  output: Writable & { readonly isTTY?: boolean },
): Promise<void> {
  if (include) {
    const lines = [`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ""}`.trimEnd()];
    for (const [name, value] of response.headers) lines.push(`${name}: ${value}`);
    output.write(`${lines.join("\r\n")}\r\n\r\n`);
  }
  if (response.body === null) return;
  let last: number | undefined;
  const watched = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      last = chunk.at(-1) ?? last;
      yield chunk;
    }
  };
  await pipeline(Readable.fromWeb(response.body), watched, output, { end: false });
  if (output.isTTY === true && last !== undefined && last !== 0x0a) output.write("\n");
}

/** Ends of a conversation by WebSocket. */
export interface Conversation {
  readonly input: Readable;
  readonly print: (line: string) => void;
  readonly note: (line: string) => void;
  /** How long to listen after the end of the input. */
  readonly waitMs: number;
}

/**
 * Sends each line of the input as a text message and prints each text message that comes; answers with the close code, or
 * with the status when the cell answered with something else.
 * @throws what @cellkit/peer throws
 */
export async function converse(target: CallTarget, call: CallRequest, talk: Conversation): Promise<number> {
  const client = await openClient(target);
  try {
    return await converseThrough(client, target, call, talk);
  } finally {
    await client.close();
  }
}

async function converseThrough(
  client: PeerClient,
  { cell, signal }: CallTarget,
  call: CallRequest,
  talk: Conversation,
): Promise<number> {
  const { openCellSocket } = await import("./cell-socket.ts");
  const ended = Promise.withResolvers<number>();
  const { url, headers } = call;
  const socket = openCellSocket(client, cell, url, { headers, signal, onFailure: ended.reject });
  let lines: Interface | undefined;
  let waiting: NodeJS.Timeout | undefined;
  const hangUp = (): void => socket.close(1000);
  socket.on("open", () => {
    lines = createInterface({ input: talk.input });
    lines.on("line", (line) => socket.send(line));
    lines.once("close", () => {
      waiting = setTimeout(hangUp, talk.waitMs);
    });
  });
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) talk.note(`a binary message of ${data.length} bytes`);
    else talk.print(data.toString());
  });
  socket.on("unexpected-response", (_request, response) => {
    response.resume();
    talk.note(`the cell answered ${response.statusCode} instead of a WebSocket`);
    ended.resolve(response.statusCode ?? 0);
  });
  socket.on("error", (error) => ended.reject(error));
  socket.on("close", (code, reason) => {
    // Without having been open, another event has told why.
    if (lines === undefined) return;
    talk.note(`closed: ${code}${reason.length === 0 ? "" : ` ${reason.toString()}`}`);
    ended.resolve(code);
  });
  signal.addEventListener("abort", hangUp, { once: true });
  try {
    return await ended.promise;
  } finally {
    clearTimeout(waiting);
    lines?.close();
    signal.removeEventListener("abort", hangUp);
    socket.terminate();
  }
}
