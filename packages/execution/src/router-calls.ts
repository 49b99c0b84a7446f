// One call to a router, from the files it needs to what its answer means.
import type { z } from "zod";
import { readCaFile } from "./ca-file.ts";
import { classifyAnswer } from "./core/classify-answer.ts";
import { parseJson } from "./core/json.ts";
import { describeIssues } from "./core/schema-issues.ts";
import {
  caFileTrouble,
  lostTrouble,
  type Trouble,
  tokenFileTrouble,
  unreachableTrouble,
  unusableTrouble,
} from "./core/trouble.ts";
import { type Exchanged, exchange } from "./exchange.ts";
import { inTime, limitTime } from "./limit-time.ts";
import type { ResolvedRouterOptions } from "./router-options.ts";
import { readTokenFile } from "./token-file.ts";

/** The largest record, audit or observation that is read; the reference's clients have the same bound. */
const maxBodyBytes = 262_144;

export interface RouterCall {
  readonly method: "GET" | "POST";
  /** From `/v1` on. */
  readonly path: string;
  readonly body?: Uint8Array;
  readonly pin?: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export type Called<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "trouble"; readonly trouble: Trouble };

/** Makes one call; a 200 or 202 has to fit the schema. Never throws: an abort by the caller is trouble, too. */
export async function callRouter<S extends z.ZodType>(
  options: ResolvedRouterOptions,
  call: RouterCall,
  schema: S,
): Promise<Called<z.output<S>>> {
  const time = limitTime(call.timeoutMs, call.signal);
  try {
    const files = await readFiles(options, time.signal);
    if ("trouble" in files) return { kind: "trouble", trouble: files.trouble };
    const exchanged = await exchange({
      origin: options.url.origin,
      method: call.method,
      path: `${options.url.prefix}${call.path}`,
      headers: headersOf(call, files.token),
      body: call.body,
      ca: files.ca,
      connectTimeoutMs: options.connectTimeoutMs,
      maxBodyBytes,
      signal: time.signal,
    });
    return read(options.url.origin, exchanged, schema);
  } finally {
    time.clear();
  }
}

type Files = { readonly token: string; readonly ca: string | undefined } | { readonly trouble: Trouble };

async function readFiles(options: ResolvedRouterOptions, signal: AbortSignal): Promise<Files> {
  const { tokenFile, ca, caFile } = options;
  const token = await inTime(readTokenFile(tokenFile), signal);
  if (token.kind !== "token") return { trouble: tokenFileTrouble(tokenFile, token.problem, token.cause) };
  if (caFile === undefined) return { token: token.token, ca };
  const bundle = await inTime(readCaFile(caFile), signal);
  if (bundle.kind !== "ca") return { trouble: caFileTrouble(caFile, bundle.problem, bundle.cause) };
  return { token: token.token, ca: bundle.pem };
}

function headersOf(call: RouterCall, token: string): Record<string, string> {
  return {
    // Names as old routers read them: by exact case.
    Authorization: `Bearer ${token}`,
    Accept: "application/json",
    ...(call.body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(call.pin === undefined ? {} : { "X-Celln-Backend": call.pin }),
  };
}

function read<S extends z.ZodType>(origin: string, exchanged: Exchanged, schema: S): Called<z.output<S>> {
  if (exchanged.kind === "not-sent") {
    return trouble(unreachableTrouble(origin, reasonOf(exchanged.cause), exchanged.cause));
  }
  if (exchanged.kind === "lost")
    return trouble(lostTrouble(origin, reasonOf(exchanged.cause), exchanged.cause));
  const { status, body } = exchanged;
  if (status !== 200 && status !== 202) return trouble(classifyAnswer(status, body));
  try {
    const parsed = schema.safeParse(parseJson(body));
    if (parsed.success) return { kind: "value", value: parsed.data };
    return trouble(unusableTrouble(status, `is not what was asked for (${describeIssues(parsed.error)})`));
  } catch (cause) {
    return trouble(unusableTrouble(status, "is no JSON", cause));
  }
}

function trouble(found: Trouble): { kind: "trouble"; trouble: Trouble } {
  return { kind: "trouble", trouble: found };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "given up";
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" && code !== "" ? code : error.message.slice(0, 120);
}
