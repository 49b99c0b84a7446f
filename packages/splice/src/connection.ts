// One client connection: reads requests, answers them here or passes their bytes to the upstream, one at a time, and
// passes the answers back. What a request or an answer is, the trackers in core/ say. Longer than 300 lines, since each
// of these rules looks at what the others do.

import type { Socket } from "node:net";
import type { ConnectionHost, HostedConnection } from "./connection-host.ts";
import {
  badRequestAnswer,
  connectAnswer,
  encodeAnswer,
  type LocalAnswer,
  lostAnswer,
  timeoutAnswer,
  unavailableAnswer,
} from "./core/answer.ts";
import { type RequestHead, RequestTracker } from "./core/request-tracker.ts";
import { FramingError } from "./errors.ts";
import { Exchange, type ExchangeEvents, type Loss } from "./exchange.ts";
import { clientLine, forwardedHead } from "./forwarded-head.ts";
import { endAndLinger } from "./linger.ts";
import type { CloseReason } from "./options.ts";
import type { UpstreamLink } from "./upstream-link.ts";
import { WebSocketRelay } from "./websocket-relay.ts";

/** The answer to a request whose exchange failed before any byte of an answer was sent. */
const lossAnswers: { readonly [loss in Loss]?: LocalAnswer } = {
  undelivered: unavailableAnswer("connection_refused"),
  unanswered: lostAnswer("connection_terminated"),
  malformed: lostAnswer("http_protocol_error"),
};

export class Connection implements HostedConnection {
  readonly #client: Socket;
  readonly #host: ConnectionHost;
  readonly #request: RequestTracker;
  readonly #exchange: Exchange;
  readonly #injected: Buffer | undefined;
  #relay: WebSocketRelay | undefined;
  /** Our FIN is decided: what the client still sends is read and dropped. */
  #finishing = false;
  /** The answer was whole before its request was. */
  #answeredEarly = false;
  /** The head of the request had begun before the drain did. */
  #beganBeforeDrain = false;
  #isInFlight = false;
  /** Bytes of the next request, held until this one is answered. */
  #held: Buffer | undefined;
  #upstreamFull = false;
  #clientEnded = false;
  #deadlineMs: number;
  /** When the client was first seen to have stopped reading; undefined once it takes bytes again. */
  #stalledSinceMs: number | undefined;
  #graceTimer: NodeJS.Timeout | undefined;

  constructor(client: Socket, host: ConnectionHost) {
    this.#client = client;
    this.#host = host;
    const { clientHeader, idleTimeoutMs, strippedRequestFields, upstreamReuseMs } = host.options;
    this.#request = new RequestTracker({
      ...(clientHeader === undefined ? {} : { reservedField: clientHeader.name.toLowerCase() }),
      ...(strippedRequestFields.length === 0 ? {} : { strippedPrefixes: strippedRequestFields }),
    });
    this.#exchange = new Exchange(client, this.#exchangeEvents(), {
      reuseMs: upstreamReuseMs,
      readBuffer: host.readBuffer,
      nowMs: host.nowMs,
    });
    this.#injected = clientHeader === undefined ? undefined : clientLine(clientHeader, client);
    this.#deadlineMs = host.nowMs() + idleTimeoutMs;
    client.on("data", (chunk: Buffer) => this.#clientData(chunk));
    client.on("drain", () => {
      this.#stalledSinceMs = undefined;
      (this.#relay ?? this.#exchange).resume();
    });
    client.on("end", () => this.#clientEnd());
    // `close` follows and does the work; a client's reset is no event worth more.
    client.on("error", () => undefined);
    client.on("close", () => this.#clientGone());
  }

  drain(): void {
    if (this.#finishing || this.#request.state !== "head") return;
    this.#beganBeforeDrain = true;
    this.#setInFlight(true);
    const { drainHeadTimeoutMs } = this.#host.options;
    this.#deadlineMs = Math.min(this.#deadlineMs, this.#host.nowMs() + drainHeadTimeoutMs);
  }

  closeSocket(reason: CloseReason): void {
    this.#relay?.close(reason);
  }

  expire(nowMs: number): void {
    if (this.#client.writableNeedDrain) {
      this.#stalledSinceMs ??= nowMs;
      if (nowMs - this.#stalledSinceMs >= this.#host.options.idleTimeoutMs) this.#client.destroy();
    }
    if (nowMs < this.#deadlineMs) return;
    if (this.#finishing) this.#client.destroy();
    else if (this.#request.state !== "head") this.#finish();
    else this.#refuse(this.#host.draining ? "refused" : "timedOut");
  }

  stop(): void {
    if (this.#finishing) return;
    if (this.#relay === undefined && this.#request.state === "idle") this.#finish();
    else this.#client.destroy();
  }

  #clientData(chunk: Buffer): void {
    if (this.#relay !== undefined) this.#relay.clientData(chunk);
    else if (!this.#finishing) this.#consume(chunk);
  }

  #consume(chunk: Buffer): void {
    const request = this.#request;
    let offset = 0;
    while (offset < chunk.length && !this.#finishing) {
      const before = request.state;
      if (before === "complete") {
        this.#held = chunk.subarray(offset);
        this.#updateFlow();
        return;
      }
      const from = offset;
      try {
        offset = request.push(chunk, offset);
      } catch (error) {
        this.#malformed(error);
        return;
      }
      if (before === "body") this.#toUpstream(chunk.subarray(from, offset));
      else if (request.head !== undefined) this.#route(request.head);
      else if (before === "idle" && request.state === "head") this.#startTimeout("headTimeoutMs");
      if (this.#answeredEarly && request.state === "complete") this.#next();
    }
  }

  #route(head: RequestHead): void {
    const { options, totals, draining } = this.#host;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    const mayRun = !draining || this.#beganBeforeDrain;
    this.#beganBeforeDrain = false;
    const own = options.local?.({ method: head.method, target: head.target });
    if (own !== undefined) {
      totals.local += 1;
      this.#answerHere(own, head);
    } else if (!mayRun) this.#refuse("refused");
    else if (head.method === "CONNECT") this.#finish(connectAnswer);
    else {
      const path = this.#host.upstream();
      if (path === undefined) this.#refuse("unavailable");
      else this.#forward(head, path);
    }
  }

  #answerHere(answer: LocalAnswer, head: RequestHead): void {
    const isLast = answer.close || head.close || head.minor === 0 || this.#host.draining;
    if (isLast || this.#request.state !== "complete") {
      this.#finish(answer);
      return;
    }
    this.#client.write(this.#encode(answer, false));
    this.#setInFlight(false);
    this.#request.next();
    this.#startTimeout("idleTimeoutMs");
  }

  #forward(head: RequestHead, path: string): void {
    this.#host.totals.forwarded += 1;
    this.#setInFlight(true);
    this.#exchange.begin(head, path);
    this.#toUpstream(forwardedHead(head, this.#injected));
  }

  #exchangeEvents(): ExchangeEvents {
    return {
      isLast: () => this.#host.draining && this.#held === undefined,
      answered: (close) => this.#answered(close),
      lost: (loss) => this.#lost(loss),
      switched: (link, rest) => this.#switch(link, rest),
      idleLost: () => this.#idleLost(),
      drained: () => this.#setUpstreamFull(false),
    };
  }

  #answered(close: boolean): void {
    const head = this.#request.head;
    const isWhole = this.#request.state === "complete";
    this.#setInFlight(false);
    const { draining, options } = this.#host;
    const wasLast = close || head?.close || head?.minor === 0 || (draining && !isWhole);
    // A second request that waits during a drain gets its refusal, even after an answer that said `close`.
    if (wasLast && !(draining && this.#held !== undefined && isWhole)) this.#finish();
    else if (!isWhole) this.#answeredEarly = true;
    else {
      this.#next();
      if (this.#clientEnded) this.#finishUnlessAsked();
      else if (draining) this.#graceTimer = setTimeout(() => this.#finishIfIdle(), options.drainGraceMs);
    }
  }

  /** The link went after an answer. If the client still uploads, nobody will read that: end it. */
  #idleLost(): void {
    this.#setUpstreamFull(false);
    if (this.#answeredEarly) this.#finish();
  }

  #next(): void {
    this.#answeredEarly = false;
    this.#request.next();
    this.#startTimeout("idleTimeoutMs");
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#updateFlow();
    this.#consume(held);
  }

  #lost(loss: Loss): void {
    const { totals } = this.#host;
    if (loss === "undelivered") totals.unavailable += 1;
    else totals.lost += 1;
    if (loss === "reset") this.#client.resetAndDestroy();
    else this.#finish(lossAnswers[loss]);
  }

  #switch(link: UpstreamLink, rest: Buffer): void {
    const { options, totals, socketClose } = this.#host;
    totals.upgraded += 1;
    this.#host.countSocket(1);
    this.#setInFlight(false);
    const relay = new WebSocketRelay(this.#client, link, options);
    this.#relay = relay;
    if (rest.length > 0) relay.upstreamData(rest);
    const held = this.#held;
    this.#held = undefined;
    this.#updateFlow();
    if (held !== undefined) relay.clientData(held);
    if (socketClose !== undefined) relay.close(socketClose);
    if (this.#clientEnded) relay.clientEnded();
  }

  #malformed(error: unknown): void {
    if (!(error instanceof FramingError)) throw error;
    this.#host.totals.malformed += 1;
    if (this.#request.head === undefined) this.#finish(badRequestAnswer(error.rule, "not-run"));
    else if (this.#exchange.headSent) this.#finish();
    else this.#finish(badRequestAnswer(error.rule, "unknown"));
  }

  #refuse(why: "refused" | "timedOut" | "unavailable"): void {
    this.#host.totals[why] += 1;
    const { refusal, unavailable } = this.#host.options;
    this.#finish(why === "refused" ? refusal : why === "timedOut" ? timeoutAnswer : unavailable);
  }

  /** Sends the last bytes and our FIN, then reads on for a while, so that the client sees them and no reset. */
  #finish(answer?: LocalAnswer): void {
    this.#finishing = true;
    clearTimeout(this.#graceTimer);
    this.#held = undefined;
    this.#exchange.close();
    this.#setInFlight(false);
    this.#startTimeout("idleTimeoutMs");
    const lastBytes = answer === undefined ? undefined : this.#encode(answer, true);
    endAndLinger(this.#client, lastBytes, this.#host.options.lingerMs);
  }

  #finishIfIdle(): void {
    if (!this.#finishing && this.#request.state === "idle") this.#finish();
  }

  #clientEnd(): void {
    this.#clientEnded = true;
    if (this.#relay !== undefined) this.#relay.clientEnded();
    else this.#finishUnlessAsked();
  }

  /** The client will send no more: what was asked for whole is still answered, and half a request never will be. */
  #finishUnlessAsked(): void {
    if (!this.#finishing && this.#request.state !== "complete") this.#finish();
  }

  #clientGone(): void {
    clearTimeout(this.#graceTimer);
    this.#finishing = true;
    this.#exchange.close();
    this.#setInFlight(false);
    this.#relay?.clientGone(() => this.#host.countSocket(-1));
    this.#host.closed(this);
  }

  #toUpstream(bytes: Uint8Array): void {
    if (!this.#exchange.write(bytes)) this.#setUpstreamFull(true);
  }

  #setUpstreamFull(isFull: boolean): void {
    if (this.#upstreamFull === isFull) return;
    this.#upstreamFull = isFull;
    this.#updateFlow();
  }

  #updateFlow(): void {
    if (this.#held !== undefined || this.#upstreamFull) this.#client.pause();
    else this.#client.resume();
  }

  #setInFlight(isInFlight: boolean): void {
    if (this.#isInFlight === isInFlight) return;
    this.#isInFlight = isInFlight;
    this.#host.countInFlight(isInFlight ? 1 : -1);
  }

  #startTimeout(which: "idleTimeoutMs" | "headTimeoutMs"): void {
    this.#deadlineMs = this.#host.nowMs() + this.#host.options[which];
  }

  #encode(answer: LocalAnswer, close: boolean): Uint8Array {
    const isHead = this.#request.head?.method === "HEAD";
    return encodeAnswer(answer, { isHead, close }, new Date().toUTCString());
  }
}
