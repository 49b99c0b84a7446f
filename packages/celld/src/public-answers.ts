// What the public listener answers without its Worker: health, and 404 while nothing is deployed.
import type { NodeEngine } from "@cellkit/engine";
import type { LocalAnswer, LocalRequest } from "@cellkit/splice";

const json = { "content-type": "application/json" };
const healthy: LocalAnswer = { status: 200, headers: json, body: '{"ok":true}' };
const unhealthy: LocalAnswer = { status: 503, headers: json, body: '{"ok":false}' };
const notFound: LocalAnswer = { status: 404, headers: json, body: '{"error":"not_found"}' };

const healthPath = "/__celld/health";
/** What stands before the path of a target in absolute form (RFC 9112 §3.2.2), which a server must take. */
const origin = /^https?:\/\/[^/?#]*/i;

/** The answer that celld gives itself, or undefined when the request is the Worker's, or the drain's to refuse. */
export function answerPublicly(
  { target }: LocalRequest,
  node: { draining: boolean; engine: NodeEngine | undefined },
): LocalAnswer | undefined {
  if (target.replace(origin, "").replace(/\?.*$/s, "") === healthPath) {
    return !node.draining && node.engine?.healthy() === true ? healthy : unhealthy;
  }
  if (node.draining || node.engine === undefined) return undefined;
  return node.engine.state === "ready" && node.engine.deployment === undefined ? notFound : undefined;
}
