// A method call inside a tunnel of kind `rpc`, in its JSON form (spec B3, A4). The form in V8's own serialisation is
// answered 415: it means nothing outside of V8.

import type { CallRequest } from "./call-request.ts";
import type { CallResponse } from "./call-response.ts";
import { RpcFailure } from "./errors.ts";
import type { PeerCall } from "./peer-call.ts";

/** Runs a method of the cell. A thrown RpcFailure tells the caller its text; anything else only that it failed. */
export type RpcHandler = (method: string, args: readonly unknown[], call: PeerCall) => Promise<unknown>;

/** An RPC as it came, and its answer to be. */
interface ReceivedRpc {
  request: CallRequest;
  response: CallResponse;
  call: PeerCall;
  /** Told what the method threw, unless its caller is told. */
  report: (error: unknown) => void;
}

/** Reads the arguments, runs the method, answers. */
export async function answerRpc(
  { request, response, call, report }: ReceivedRpc,
  method: string | undefined,
  run: RpcHandler,
): Promise<void> {
  if (method === undefined) return answer(response, 400, "RPC method header is missing");
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers["content-type"] ?? "")) {
    return answer(response, 415, "RPC arguments are not JSON");
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const args = parseArguments(Buffer.concat(chunks));
  if (typeof args === "string") return answer(response, 400, args);
  let text: string | undefined;
  try {
    // Not always a text, whatever its type says: a function has none.
    text = JSON.stringify((await run(method, args, call)) ?? null) as string | undefined;
  } catch (error) {
    if (!(error instanceof RpcFailure)) report(error);
    if (response.headersSent) return;
    return answer(
      response,
      500,
      `RPC failed: ${error instanceof RpcFailure ? error.message : "the method threw"}`,
    );
  }
  if (response.headersSent) return;
  if (text === undefined)
    return answer(response, 500, "RPC failed: the method's answer is nothing that JSON has");
  answer(response, 200, text);
}

function parseArguments(body: Buffer): readonly unknown[] | string {
  if (body.length === 0) return [];
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return "JSON RPC arguments are not UTF-8";
  }
  try {
    const args: unknown = JSON.parse(text);
    return Array.isArray(args) ? args : "JSON RPC arguments are not an array";
  } catch {
    return "JSON RPC arguments are not JSON";
  }
}

function answer(response: CallResponse, status: number, text: string): void {
  response.answerForHandler(status, text);
}
