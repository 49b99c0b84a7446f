import { connect } from "node:net";
import type { ExecutionRequestInput } from "@cellkit/execution";
import { exampleRequest, testBackendToken } from "../../src/index.ts";

/** What came back: undefined status when no answer could be read. */
export interface Called {
  readonly status: number | undefined;
  readonly body: unknown;
  readonly bytes: Buffer;
}

/** Writes bytes and reads until the other side is done. */
export async function exchange(origin: string, request: string | Uint8Array): Promise<Buffer> {
  const { hostname, port } = new URL(origin);
  const chunks: Buffer[] = [];
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(request);
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => resolve());
    socket.on("close", () => resolve());
  });
  return Buffer.concat(chunks);
}

/** One call as a router makes it. */
export async function call(
  origin: string,
  method: string,
  path: string,
  body: string | Uint8Array = "",
  authorization = `Bearer ${testBackendToken}`,
): Promise<Called> {
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${origin}\r\nAuthorization: ${authorization}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  const bytes = await exchange(origin, Buffer.concat([Buffer.from(head), Buffer.from(body)]));
  return { ...readAnswer(bytes), bytes };
}

function readAnswer(bytes: Buffer): { status: number | undefined; body: unknown } {
  const text = bytes.toString();
  const status = /^HTTP\/1\.1 (\d{3}) OK\r\n/.exec(text)?.[1];
  const at = text.indexOf("\r\n\r\n");
  if (status === undefined || at < 0) return { status: undefined, body: undefined };
  try {
    return { status: Number(status), body: JSON.parse(text.slice(at + 4)) };
  } catch {
    return { status: Number(status), body: text.slice(at + 4) };
  }
}

export const submit = (origin: string, id: string, change: Partial<ExecutionRequestInput> = {}) =>
  call(origin, "POST", "/v1/executions", JSON.stringify(exampleRequest(id, change)));

export const read = (origin: string, id: string) => call(origin, "GET", `/v1/executions/${id}`);

/** What a promise is rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new TypeError(`nothing failed, but there is ${JSON.stringify(value)}`);
    },
    (error: unknown) => error,
  );
}
