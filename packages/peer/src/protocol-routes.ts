// The paths of the protocol on a node's internal listener: what is served, and how all others are refused.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { signedTarget } from "./core/canonical.ts";
import { peerHeader } from "./core/constants.ts";
import { protocolPath } from "./core/protocol-paths.ts";
import { readSignedHead } from "./core/signed-head.ts";
import { notUpgraded } from "./core/tunnel-accept.ts";
import type { RequestVerifier } from "./core/verifier.ts";
import { answerRequest, type PeerAnswer, refuseUpgrade } from "./peer-answer.ts";
import type { PeerListener } from "./peer-listener.ts";
import { answerProbe, type ProbeIdentity } from "./probe-answer.ts";
import { receivedHead } from "./received-head.ts";
import { tunnelVersionText } from "./wire.ts";

/** What the protocol's paths are answered from. */
export interface ProtocolRoutesOptions {
  /** Takes tunnels and cancellations, and judges what is signed by version 5; undefined until the node has its key: 503. */
  readonly listener: () => PeerListener | undefined;
  /** Judges the probes of version 2. */
  readonly olderVerifier: () => RequestVerifier | undefined;
  /** Who answers probes. */
  readonly identity: () => ProbeIdentity;
  /** This node's wall clock, milliseconds since the Unix epoch. @default Date.now */
  readonly clock?: () => number;
}

/** To be mounted on the daemon's server, before its own routes. */
export interface ProtocolRoutes {
  /** Takes a request if its path is the protocol's. @returns false when it is not: nothing was done */
  request(request: IncomingMessage, response: ServerResponse): boolean;
  /** Takes every upgrade: a tunnel's, or it is refused. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

const starting: PeerAnswer = { status: 503, message: "this node has no fleet key yet" };
const notFound: PeerAnswer = { status: 404, message: '{"error":"not_found"}' };

export function protocolRoutes(options: ProtocolRoutesOptions): ProtocolRoutes {
  const { identity, clock = Date.now } = options;
  return {
    request(request, response) {
      const line = protocolPath(signedTarget(request.url ?? ""));
      if (line === undefined) return false;
      const listener = options.listener();
      const answer = (given: PeerAnswer) => answerRequest(response, given, clock());
      if (line.use === "refused") answer(refused(request));
      else if (line.use === "tunnel") answer(notUpgraded);
      else if (line.use === "probe") {
        const verifier = line.version === 5 ? listener?.verifier : options.olderVerifier();
        if (verifier === undefined) answer(starting);
        else {
          const { version } = line;
          const head = receivedHead(request);
          const reply = answerProbe(head, { verifier, version, identity: identity(), nowMs: clock() });
          response.writeHead(reply.status, reply.headers).end(reply.body);
        }
      } else if (listener?.request(request, response) !== true) answer(starting);
      return true;
    },
    upgrade(request, socket, head) {
      const listener = options.listener();
      if (listener?.upgrade(request, socket, head) === true) return;
      socket.on("error", () => undefined);
      const use = protocolPath(signedTarget(request.url ?? ""))?.use;
      refuseUpgrade(
        socket,
        use === "tunnel" ? starting : use === undefined ? notFound : refused(request),
        clock(),
      );
    },
  };
}

/** 426 to a call that says it is of another generation, before anything else is looked at; 404 to all others. */
function refused(request: IncomingMessage): PeerAnswer {
  const { version } = readSignedHead(receivedHead(request).headers);
  return version === undefined || version === tunnelVersionText
    ? notFound
    : { status: 426, message: "peer protocol version is incompatible" };
}

/** The field that all answers to peers carry, with its value. */
export const peerVersionField: Readonly<Record<string, string>> = { [peerHeader.version]: tunnelVersionText };
