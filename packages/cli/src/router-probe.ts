// What a router makes of a token: one GET of its capabilities, which client and discovery tokens are both good for.
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { capabilitiesSchema, parseJson } from "@cellkit/execution";
import { RouterAccessError } from "./errors.ts";
import { type RouterAccess, tlsOf } from "./router-access.ts";

/** What a router said to a token. */
export type TokenVerdict =
  /** `nodes`: the names of the dispatchers that it has reports of, one for each; `listedCount`: how many there are in its list. */
  | { readonly kind: "accepted"; readonly nodes: readonly string[]; readonly listedCount: number }
  | { readonly kind: "refused" }
  | { readonly kind: "unknown"; readonly why: string };

/** Verdicts in words, for people. */
export function toldOf(verdicts: readonly (TokenVerdict | undefined)[]): string {
  return verdicts
    .map((verdict) => (verdict?.kind === "unknown" ? verdict.why : (verdict?.kind ?? "not asked")))
    .join(", ");
}

/** A router needs less than four seconds for all of its dispatchers. */
const timeoutMs = 5_000;
const maxBodyBytes = 2 * 1024 * 1024;

/** Shows a token to a router, over a connection of its own. Rejects with the signal's reason alone. */
export async function probeRouter(
  url: string,
  token: string,
  access: RouterAccess = {},
): Promise<TokenVerdict> {
  const { signal } = access;
  let answer: GetAnswer;
  try {
    answer = await getFromRouter(url, "/v1/capabilities", { ...access, token });
  } catch (error) {
    signal?.throwIfAborted();
    return { kind: "unknown", why: `no answer (${(error as NodeJS.ErrnoException).code ?? "cut"})` };
  }
  const { status, body } = answer;
  if (status === 401 || status === 403) return { kind: "refused" };
  if (status !== 200) return { kind: "unknown", why: `status ${status}` };
  const found = capabilitiesSchema.safeParse(json(body)).data;
  if (found === undefined) return { kind: "unknown", why: "an answer that is none of a router" };
  return {
    kind: "accepted",
    nodes: found.nodes.flatMap((entry) => ("report" in entry ? [entry.report.node.node_name] : [])),
    listedCount: found.nodes.length,
  };
}

function json(body: Buffer): unknown {
  try {
    return parseJson(body.toString());
  } catch {
    return undefined;
  }
}

/** How failures of TLS are called: a certificate that is not accepted, on either side, and no TLS at all. */
const tlsFailure = /CERT|SIGNATURE|_SSL_|EPROTO|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH/;

/**
 * Looks whether TLS with a router comes about, which waiting does not mend. One that cannot be reached is none of that.
 * @throws RouterAccessError (`CELLKIT_CLI_ROUTER_ACCESS`); the signal's reason
 */
export async function checkTls(url: string, access: RouterAccess): Promise<void> {
  if (!url.startsWith("https:")) return;
  try {
    await getFromRouter(url, "/v1/health", access);
  } catch (cause) {
    access.signal?.throwIfAborted();
    const { code = "" } = cause as NodeJS.ErrnoException;
    if (!tlsFailure.test(code)) return;
    throw new RouterAccessError(
      `there is no TLS with ${url} (${code}): give by --ca-file the CA that its certificate comes from, and by --client-cert and --client-key a certificate where one is asked for`,
      { cause },
    );
  }
}

/** An answer's status and body. */
interface GetAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/**
 * One GET over a connection of its own.
 * @param path below the router's URL
 * @param options `idleMs`: how long the connection lies there before the request goes out
 */
export async function getFromRouter(
  url: string,
  path: string,
  { token, idleMs, ...access }: RouterAccess & { token?: string; idleMs?: number } = {},
): Promise<GetAnswer> {
  const { signal } = access;
  const tls = await tlsOf(access);
  const bound = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]);
  const { promise, resolve, reject } = Promise.withResolvers<GetAnswer>();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const options = { agent: false, signal: bound, headers } as const;
  const whole = `${url.replace(/\/+$/, "")}${path}`;
  const call = whole.startsWith("https:")
    ? requestTls(whole, { ...options, ...tls, rejectUnauthorized: true })
    : requestPlain(whole, options);
  call.once("error", reject).once("response", (response) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on("error", reject);
    response.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBodyBytes) chunks.push(chunk);
      else response.destroy(Object.assign(new RangeError("too long"), { code: "TOO_LONG" }));
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
    response.on("close", () => reject(Object.assign(new RangeError("cut"), { code: "ECONNRESET" })));
  });
  // What ends a connection that lies idle is told by the promise.
  if (idleMs !== undefined) await Promise.race([sleep(idleMs), promise.catch(() => undefined)]);
  call.end();
  return promise;
}
