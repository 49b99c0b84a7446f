// One health request, on a connection of its own: a pooled one could be kept alive by a node that is leaving.
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { ProbeResult } from "./core/node-state.ts";

/** Where and how to ask. */
export interface ProbeTarget {
  readonly url: URL;
  /** Sent as `Host`, and asked for in TLS. */
  readonly authority: URL;
  readonly path: string;
  readonly timeoutMs: number;
}

/** Asks once. Never rejects: no answer is an answer. Does not keep the process alive. */
export function probeHealth(target: ProbeTarget, signal: AbortSignal): Promise<ProbeResult> {
  const { url, authority, path, timeoutMs } = target;
  const secure = url.protocol === "https:";
  return new Promise((resolve) => {
    if (signal.aborted) return resolve("no-answer");
    const request = (secure ? requestHttps : requestHttp)({
      agent: false,
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port || (secure ? 443 : 80),
      path,
      headers: { host: authority.host, connection: "close" },
      ...(secure ? { servername: authority.hostname } : {}),
    });
    const done = (result: ProbeResult): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      request.destroy();
      resolve(result);
    };
    const giveUp = (): void => done("no-answer");
    const timer = setTimeout(giveUp, timeoutMs);
    timer.unref();
    signal.addEventListener("abort", giveUp);
    request.on("socket", (socket) => socket.unref());
    request.on("error", giveUp);
    request.on("response", (response) => {
      response.on("error", giveUp);
      done(response.statusCode === 200 ? "ok" : response.statusCode === 503 ? "unavailable" : "no-answer");
    });
    request.end();
  });
}
