// One call to a router, from the files it needs to what its answer means.
import type { z } from "zod";
import { readCaFile } from "./ca-file.ts";
import { causeCode } from "./cause-code.ts";
import { type ClientCertificate, readClientCertificate } from "./client-certificate.ts";
import { classifyAnswer } from "./core/classify-answer.ts";
import { parseJson } from "./core/json.ts";
import { isUntrusted } from "./core/mutual-trust.ts";
import { describeIssues } from "./core/schema-issues.ts";
import {
  caFileTrouble,
  clientCertificateTrouble,
  clientRefusedTrouble,
  lostTrouble,
  type Purpose,
  type Trouble,
  tokenFileTrouble,
  unreachableTrouble,
  untrustedTrouble,
  unusableTrouble,
} from "./core/trouble.ts";
import { type Exchanged, exchange } from "./exchange.ts";
import { inTime, limitTime } from "./limit-time.ts";
import type { ResolvedRouterOptions } from "./router-options.ts";
import { readTokenFile } from "./token-file.ts";

/** The largest record, audit or observation that is read; the reference's clients have the same bound. */
const maxBodyBytes = 262_144;

export interface RouterCall {
  readonly purpose: Purpose;
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
      clientCertificate: files.clientCertificate,
      connectTimeoutMs: options.connectTimeoutMs,
      maxBodyBytes,
      signal: time.signal,
    });
    return read(options, exchanged, call.purpose, schema);
  } finally {
    time.clear();
  }
}

interface Files {
  readonly token: string;
  readonly ca: string | undefined;
  readonly clientCertificate: ClientCertificate | undefined;
}

async function readFiles(
  options: ResolvedRouterOptions,
  signal: AbortSignal,
): Promise<Files | { readonly trouble: Trouble }> {
  const { tokenFile, ca, caFile, clientFiles } = options;
  const token = await inTime(readTokenFile(tokenFile), signal);
  if (token.kind !== "token") return { trouble: tokenFileTrouble(tokenFile, token.problem, token.cause) };
  const files = { token: token.token, ca, clientCertificate: undefined };
  const withCa = caFile === undefined ? files : await withCaFile(files, caFile, signal);
  if (clientFiles === undefined || "trouble" in withCa) return withCa;
  const client = await inTime(readClientCertificate(clientFiles, signal), signal);
  if (client.kind === "pair") return { ...withCa, clientCertificate: client };
  const path = client.kind === "late" ? clientFiles.certFile : client.path;
  return { trouble: clientCertificateTrouble(path, client.problem, client.cause) };
}

async function withCaFile(
  files: Files,
  caFile: string,
  signal: AbortSignal,
): Promise<Files | { readonly trouble: Trouble }> {
  const bundle = await inTime(readCaFile(caFile), signal);
  if (bundle.kind === "ca") return { ...files, ca: bundle.pem };
  return { trouble: caFileTrouble(caFile, bundle.problem, bundle.cause) };
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

function read<S extends z.ZodType>(
  { url: { origin }, caFile, clientFiles }: ResolvedRouterOptions,
  exchanged: Exchanged,
  purpose: Purpose,
  schema: S,
): Called<z.output<S>> {
  if (exchanged.kind === "client-refused") {
    const { cause } = exchanged;
    return trouble(clientRefusedTrouble(origin, clientFiles?.certFile, reasonOf(cause), cause));
  }
  if (exchanged.kind === "not-sent") {
    const { cause } = exchanged;
    const code = causeCode(cause);
    if (isUntrusted(code)) return trouble(untrustedTrouble(origin, caFile, code, cause));
    return trouble(unreachableTrouble(origin, reasonOf(cause), cause));
  }
  if (exchanged.kind === "lost")
    return trouble(lostTrouble(origin, reasonOf(exchanged.cause), exchanged.cause));
  const { status, body } = exchanged;
  if (status !== 200 && status !== 202) return trouble(classifyAnswer(status, body, purpose));
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
