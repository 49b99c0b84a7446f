// One room: a cell with its messages in SQLite and its members on WebSockets that let it hibernate.

import { DurableObject } from "cloudflare:workers";
import { answerKeepalive, registerAutoResponse } from "@cellkit/client/worker";
import { json, methodRefusal, refusal } from "./answers.ts";
import { bodyLength } from "./body.ts";
import { Messages } from "./messages.ts";

const maxBodyBytes = 1024 * 1024;
const maxTextBytes = 64 * 1024;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Close codes of this application (RFC 6455 section 7.4.2 leaves 4000 to 4999 to it). */
const closeCodes = { binary: 4003, tooLong: 4009 } as const;

export class Room extends DurableObject {
  /** A new one for each run of the constructor: whoever sees it change knows that the cell was started again. */
  readonly #boot = crypto.randomUUID();
  readonly #messages: Messages;
  /** Sockets taken with `accept()`: they keep the room in memory and only this instance knows them. */
  readonly #regular = new Set<WebSocket>();

  constructor(state: DurableObjectState, env: Cloudflare.Env) {
    super(state, env);
    this.#messages = new Messages(state.storage.sql);
    // The pair lives with the instance's host, not in storage: set it again each time the room starts.
    registerAutoResponse(state);
  }

  /** Every request of the room comes here, with the path that the client sent: `/rooms/:room/:action`. */
  override async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const action = url.pathname.split("/")[3] ?? "";
    if (action === "messages" && request.method === "POST") return this.#post(request, url);
    if (request.method !== "GET") return methodRefusal(action === "messages" ? "GET, POST" : "GET");
    switch (action) {
      case "":
        return json({ boot: this.#boot, count: this.#messages.count(), members: this.#members().length });
      case "boot":
        return json({ boot: this.#boot });
      case "count":
        return json({ count: this.#messages.count() });
      case "ids":
        return json({ ids: this.#messages.occurrences() });
      case "messages":
        return this.#page(url);
      case "socket":
        return this.#upgrade(request, (server) => this.ctx.acceptWebSocket(server));
      case "regular":
        return this.#upgrade(request, (server) => this.#acceptRegular(server));
      default:
        return refusal(404, `a room has no ${action}`);
    }
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#receive(socket, message);
  }

  /** Without this the client's close would stay unanswered until it gives up waiting. */
  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    // 1005 and 1006 are what the runtime reports when no code came; they cannot be sent (RFC 6455 section 7.4.1).
    if (code === 1005 || code === 1006) socket.close();
    else socket.close(code, reason);
  }

  async #post(request: Request, url: URL): Promise<Response> {
    const id = url.searchParams.get("id") ?? "";
    if (!uuid.test(id)) return refusal(400, "id is a UUID in lower case");
    const bytes = await bodyLength(request, maxBodyBytes);
    if (bytes === undefined) return refusal(413, `a message has at most ${maxBodyBytes} bytes`);
    this.#messages.insert(id, bytes);
    return json({ id, count: this.#messages.count(), boot: this.#boot });
  }

  #page(url: URL): Response {
    const after = url.searchParams.get("after") ?? "0";
    if (!/^\d{1,15}$/.test(after)) return refusal(400, "after is the number of a message");
    return json(this.#messages.after(Number(after)));
  }

  #upgrade(request: Request, accept: (server: WebSocket) => void): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      return refusal(426, "this route takes a WebSocket upgrade");
    }
    const { 0: client, 1: server } = new WebSocketPair();
    accept(server);
    server.send(JSON.stringify({ type: "hello", boot: this.#boot }));
    return new Response(null, { status: 101, webSocket: client });
  }

  #acceptRegular(server: WebSocket): void {
    server.accept();
    this.#regular.add(server);
    server.addEventListener("message", ({ data }) => {
      // No auto-response here: the host answers only for sockets that may hibernate.
      if (!answerKeepalive(server, data)) this.#receive(server, data);
    });
    server.addEventListener("close", () => this.#regular.delete(server));
    server.addEventListener("error", () => this.#regular.delete(server));
  }

  #receive(socket: WebSocket, message: string | ArrayBuffer): void {
    if (typeof message !== "string") {
      socket.close(closeCodes.binary, "text messages only");
      return;
    }
    const bytes = new TextEncoder().encode(message).byteLength;
    if (bytes > maxTextBytes) {
      socket.close(closeCodes.tooLong, `at most ${maxTextBytes} bytes`);
      return;
    }
    const n = this.#messages.insert(crypto.randomUUID(), bytes, message);
    const text = JSON.stringify({ type: "message", n, text: message });
    for (const member of this.#members()) member.send(text);
  }

  #members(): WebSocket[] {
    return [...this.ctx.getWebSockets(), ...this.#regular].filter(
      (socket) => socket.readyState === WebSocket.OPEN,
    );
  }
}
