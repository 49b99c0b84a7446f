// The source of Workers that several tests use.

/** Rooms that count, hold regular and hibernatable sockets, and say where they run. */
export const rooms = `
import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.boot = crypto.randomUUID();
    ctx.storage.sql.exec("create table if not exists writes (id integer primary key)");
  }
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const action = pathname.split("/")[2];
    if (action === "regular" || action === "hibernatable") {
      const [client, server] = Object.values(new WebSocketPair());
      if (action === "regular") {
        server.accept();
        server.addEventListener("message", (event) => server.send("echo " + event.data));
      } else this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    if (action === "alarm") await this.ctx.storage.setAlarm(Date.now() + 2000);
    if (action === "slow") {
      console.log("slow request runs");
      await new Promise((resolve) => setTimeout(resolve, Number(searchParams.get("ms") ?? 1500)));
    }
    if (action === "write") this.ctx.storage.sql.exec("insert into writes default values");
    const { count } = this.ctx.storage.sql.exec("select count(*) as count from writes").one();
    return Response.json({ count, boot: this.boot });
  }
  alarm() { this.ctx.storage.sql.exec("insert into writes default values"); }
  webSocketMessage(socket, message) { socket.send("echo " + message); }
}
export default {
  fetch(request, env) {
    const room = new URL(request.url).pathname.split("/")[1];
    return env.ROOM.get(env.ROOM.idFromName(room)).fetch(request);
  },
};
`;
