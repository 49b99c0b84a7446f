// The routes by which an operator looks after cells and stops the node.
import type { HttpAnswer, HttpRequest, Route } from "@cellkit/daemon";
import type { NodeEngine } from "@cellkit/engine";
import {
  isScope,
  judgeOperator,
  type NodeDirectory,
  type OperatorAccess,
  peerVersionField,
} from "@cellkit/peer";
import { askCell } from "./ask-cell.ts";

/** What the routes work on. */
export interface OperatorRoutesOptions {
  /** This node's name. */
  readonly node: string;
  readonly engine: () => NodeEngine | undefined;
  /** Where the other nodes are; undefined until the fleet was joined. */
  readonly directory: () => NodeDirectory | undefined;
  readonly access: () => OperatorAccess;
  /** Begins the drain. */
  readonly stop: () => void;
}

type Handle = (request: HttpRequest, body: Uint8Array | undefined) => HttpAnswer | Promise<HttpAnswer>;

const malformedScope: HttpAnswer = { status: 400, json: { error: "malformed_cell_scope" } };
const unavailable: HttpAnswer = { status: 503, json: { error: "NodeUnavailable" } };

/** `/cell`, `/do`, `/evict` and `/shutdown`, each for those that {@link judgeOperator} lets in. */
export function operatorRoutes(options: OperatorRoutesOptions): Route[] {
  const guarded = (method: string, path: string, handle: Handle): Route => ({
    method,
    path,
    handle: async (request) => {
      const judged = await judgeOperator(request.raw, () => request.body(), options.access());
      const answer: HttpAnswer = judged.ok
        ? await handle(request, judged.body)
        : {
            status: judged.status,
            headers: { "content-type": "application/json", ...peerVersionField },
            body: judged.message,
          };
      return { ...answer, headers: { ...answer.headers, ...peerVersionField } };
    },
  });
  return [
    guarded("*", "/cell/*", ({ rest }) => locate(rest, options)),
    guarded("*", "/do/*", (request, body) => ask(request, body, options.engine())),
    // workerd cannot be told to evict: it does so by itself once a cell was idle for about 10 s.
    guarded("*", "/evict/*", ({ rest }) =>
      isCell(rest) ? { status: 200, json: { ok: true } } : malformedScope,
    ),
    guarded("POST", "/shutdown", ({ query }) => {
      if (query.get("handoff") === "preserve")
        return { status: 501, json: { error: "preserve_not_supported" } };
      options.stop();
      return { status: 200, json: { ok: true } };
    }),
  ];
}

/** Whether a text is `<Class>:<64 hex digits>`. */
function isCell(text: string): boolean {
  return isScope(text) && /^.+:[0-9a-f]{64}$/i.test(text);
}

/** Brings a cell into memory, and says where. */
async function locate(
  scope: string,
  { node, engine, directory }: OperatorRoutesOptions,
): Promise<HttpAnswer> {
  if (!isCell(scope)) return malformedScope;
  const running = engine();
  if (running?.peerSocket === undefined) return unavailable;
  const place = await running.locateCell(scope).catch(() => ({ problem: "unanswered" }) as const);
  if ("problem" in place) {
    if (place.problem === "id") return malformedScope;
    return {
      status: 503,
      json: { error: place.problem === "unanswered" ? "ResolveFailed" : "RuntimeFailed" },
    };
  }
  if (place.node === node) return { status: 200, json: { route: "local", cell: scope } };
  const record = await directory()?.find(place.node);
  const known = record === undefined ? {} : { addr: record.addr, peer_protocol: record.peerProtocol };
  return { status: 307, json: { route: "remote", node: place.node, ...known } };
}

/** Gives a request to a cell. */
async function ask(
  request: HttpRequest,
  body: Uint8Array | undefined,
  engine: NodeEngine | undefined,
): Promise<HttpAnswer> {
  const { rest, raw, signal } = request;
  if (engine?.state === "ready" && engine.deployment === undefined) {
    return { status: 404, json: { error: "not_found" } };
  }
  if (engine?.peerSocket === undefined) return unavailable;
  let scope = rest;
  if (/^[0-9a-f]{64}$/i.test(rest)) {
    const [className, ...others] = engine.cellClasses;
    if (className === undefined || others.length > 0) {
      return refusal(400, "a bare cell id requires exactly one configured Durable Object class");
    }
    scope = `${className}:${rest}`;
  }
  if (!isCell(scope)) return refusal(400, "cell id is not a well-formed scope");
  if (scope.startsWith("__"))
    return { status: 403, json: { error: "a reserved class is not reachable over /do/" } };
  return askCell(engine.peerSocket, { scope, incoming: raw, body, signal });
}

function refusal(status: number, body: string): HttpAnswer {
  return { status, headers: { "content-type": "application/json" }, body };
}
