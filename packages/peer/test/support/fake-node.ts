// A node as far as a prober sees it: a real server that answers with the package's own functions, or as an original does.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { PeerVersion } from "../../src/core/constants.ts";
import { FleetKey } from "../../src/core/fleet-key.ts";
import { RequestVerifier } from "../../src/core/verifier.ts";
import { probePath } from "../../src/peer-probe.ts";
import { answerProbe, type ProbeReply } from "../../src/probe-answer.ts";
import { createProbeKey, type ProbeKey } from "../../src/probe-key.ts";
import { pairsOf } from "./pairs.ts";

export const fleetKey = new FleetKey(new Uint8Array(32).fill(7));
export const otherKey = new FleetKey(new Uint8Array(32).fill(8));

export interface FakeNodeOptions {
  node?: string;
  /** What its answers say; the record says the address. */
  advertise?: string;
  /** Generations whose probe it answers. */
  speaks?: readonly PeerVersion[];
  keys?: readonly FleetKey[];
  /** How far its clock is ahead. */
  skewMs?: number;
  /** Answers as nodes do that send no `Date`. */
  withoutDate?: boolean;
  /** The members of its `/state`; undefined: it has none. */
  state?: object | undefined;
  /** Refuses all but probe and state, as an original does while it is being stopped. */
  refusing?: boolean;
  /** In place of its own answer to a probe. */
  instead?: (reply: ProbeReply) => ProbeReply;
}

export interface FakeNode extends AsyncDisposable {
  readonly addr: string;
  readonly node: string;
  readonly probeKey: ProbeKey;
  /** Requests so far, `GET /state`. */
  readonly requests: string[];
}

/** The state of a node of ours that serves. */
export const servingState = {
  ownership: "s3",
  node: "node-a",
  version: "1.2.3",
  draining: false,
  runtime: { state: "ready" },
};

export async function fakeNode(options: FakeNodeOptions = {}): Promise<FakeNode> {
  const {
    node = "node-a",
    speaks = [2, 5],
    keys = [fleetKey],
    skewMs = 0,
    refusing = false,
    instead,
  } = options;
  const state = "state" in options ? options.state : { ...servingState, node };
  const probeKey = createProbeKey();
  const verifiers = new Map(
    speaks.map((version) => [version, new RequestVerifier({ keys, version, self: node })]),
  );
  const requests: string[] = [];
  let addr = "";
  const probe = (version: PeerVersion, request: IncomingMessage): ProbeReply | undefined => {
    const verifier = verifiers.get(version);
    if (verifier === undefined) return undefined;
    const { method = "", url: target = "", rawHeaders } = request;
    const identity = { node, advertise: options.advertise ?? addr, privateKey: probeKey.privateKey };
    const received = { method, target, headers: pairsOf(rawHeaders) };
    return answerProbe(received, { verifier, version, identity, nowMs: Date.now() + skewMs });
  };
  const route = (request: IncomingMessage): ProbeReply | undefined => {
    if (request.url === probePath[2]) return probe(2, request);
    if (request.url === probePath[5]) return probe(5, request);
    if (request.url === "/state" && state !== undefined)
      return { status: 200, headers: {}, body: JSON.stringify(state) };
    if (refusing) return { status: 503, headers: {}, body: '{"ok":false,"draining":true}' };
    return undefined;
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push(`${request.method} ${request.url}`);
    const isProbe = request.url === probePath[2] || request.url === probePath[5];
    const own = route(request) ?? { status: 404, headers: {}, body: '{"error":"not_found"}' };
    const { status, headers, body } = isProbe && instead !== undefined ? instead(own) : own;
    response.sendDate = false;
    const { date, ...rest } = headers;
    response
      .writeHead(status, { ...rest, ...(date === undefined || options.withoutDate === true ? {} : { date }) })
      .end(body);
  };
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  addr = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    addr,
    node,
    probeKey,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
