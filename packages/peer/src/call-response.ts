// The answer inside a tunnel: it carries the version of the protocol, and nothing that an application puts in can pass
// for a word of the node (spec §14, weakness 15).

import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from "node:http";
import { isReservedHeader } from "./call-headers.ts";
import { peerHeader } from "./core/constants.ts";
import { routeErrorHeader, staleOwnerMarker } from "./core/tunnel-names.ts";
import { tunnelVersionText } from "./wire.ts";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

export class CallResponse extends ServerResponse<IncomingMessage> {
  #isStale = false;

  /** Answers that this node does not own the cell and nothing ran: the one way to the stale marker. */
  answerStale(text: string): void {
    this.#isStale = true;
    this.writeHead(409, { "content-type": "application/json" });
    this.end(text);
  }

  override writeHead(status: number, reason?: string, headers?: Headers): this;
  override writeHead(status: number, headers?: Headers): this;
  override writeHead(status: number, reasonOrHeaders?: string | Headers, headers?: Headers): this {
    const reason = typeof reasonOrHeaders === "string" ? reasonOrHeaders : undefined;
    const given = typeof reasonOrHeaders === "string" ? headers : (reasonOrHeaders ?? headers);
    for (const name of this.getHeaderNames()) if (isReservedHeader(name)) this.removeHeader(name);
    const cleaned = this.#own(given);
    return reason === undefined ? super.writeHead(status, cleaned) : super.writeHead(status, reason, cleaned);
  }

  #own(given: Headers | undefined): Headers {
    if (Array.isArray(given)) {
      const flat = (given.some(Array.isArray) ? given.flat() : given) as OutgoingHttpHeader[];
      const own: OutgoingHttpHeader[] = [peerHeader.version, tunnelVersionText];
      if (this.#isStale) own.push(routeErrorHeader, staleOwnerMarker);
      for (let i = 0; i + 1 < flat.length; i += 2) {
        const [name, value] = [flat[i], flat[i + 1]];
        if (name !== undefined && value !== undefined && !isReservedHeader(String(name)))
          own.push(name, value);
      }
      return own;
    }
    const own: OutgoingHttpHeaders = {};
    for (const name in given) if (!isReservedHeader(name)) own[name] = given[name];
    own[peerHeader.version] = tunnelVersionText;
    if (this.#isStale) own[routeErrorHeader] = staleOwnerMarker;
    return own;
  }
}
