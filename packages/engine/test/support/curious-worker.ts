// A Worker that reports everything about itself that our entry module could change.

/** Its cells: `Room` with an ancestor and every kind of member, `Plain` without DurableObject, `Fields` with arrow handlers. */
export const curiousWorker = `
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";

class Counter extends RpcTarget {
  #count = 0;
  add(by) { this.#count += by; return this.#count; }
  get count() { return this.#count; }
}
class Base extends DurableObject {
  static kind = "base";
  async fetch(request) { return this.answer(request); }
  inherited() { return "inherited by " + this.constructor.name; }
}
export class Room extends Base {
  static kind = "room";
  #secret = "private";
  field = "own";
  constructor(ctx, env) {
    super(ctx, env);
    this.newTarget = new.target === Room;
  }
  async answer(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/alarm") {
      await this.ctx.storage.put("alarmed", false);
      await this.ctx.storage.setAlarm(Date.now() + 20);
      return Response.json("set");
    }
    if (pathname === "/alarmed") return Response.json(await this.ctx.storage.get("alarmed") ?? null);
    return Response.json(this.facts());
  }
  async alarm(info) { await this.ctx.storage.put("alarmed", { retries: info?.retryCount }); }
  facts() {
    return {
      constructor: this.constructor === Room,
      name: this.constructor.name,
      kind: this.constructor.kind,
      newTarget: this.newTarget,
      instanceOf: [this instanceof Room, this instanceof Base, this instanceof DurableObject],
      prototype: Object.getPrototypeOf(this) === Room.prototype,
      prototypeNames: Object.getOwnPropertyNames(Room.prototype),
      baseNames: Object.getOwnPropertyNames(Base.prototype),
      fetchName: [this.fetch.name, this.fetch.length, typeof this.fetch],
      fetchDescriptor: { ...Object.getOwnPropertyDescriptor(Base.prototype, "fetch"), value: undefined },
      ownNames: Object.getOwnPropertyNames(this).sort(),
      secret: this.#secret,
      idName: this.ctx.id.name,
      id: this.ctx.id.toString(),
      envKeys: Object.keys(this.env).sort(),
    };
  }
  counter() { return new Counter(); }
  throws() { throw new RangeError("from the cell"); }
  add(a, b) { return a + b; }
  get property() { return "got"; }
}
export class Plain {
  constructor(state, env) { this.state = state; this.env = env; }
  async fetch(request) { return Response.json({ plain: this.constructor === Plain, url: request.url, id: this.state.id.toString() }); }
}
export class Fields extends DurableObject {
  fetch = async (request) => Response.json({ fields: Object.getOwnPropertyNames(this).sort(), method: request.method });
}
export class Named extends WorkerEntrypoint {
  async fetch() { return Response.json({ named: this.constructor === Named, props: this.ctx.props }); }
  hello(name) { return "hello " + name; }
  counter() { return new Counter(); }
}
export const objectEntrypoint = { async fetch() { return new Response("object"); } };

const roomOf = (env, name) => env.ROOM.get(env.ROOM.idFromName(name));
const attempt = async (action) => { try { return await action(); } catch (error) { return [error.name, error.message, error instanceof RangeError]; } };

const routes = {
  "/self": (request, env, ctx, self) => ({
    self: self === handler,
    envKeys: Object.keys(env).sort(),
    ctx: ctx.constructor.name,
    ctxKeys: [typeof ctx.waitUntil, typeof ctx.passThroughOnException],
    props: ctx.props,
    exports: Object.keys(ctx.exports).filter((name) => !name.startsWith("Cellkit")).sort(),
  }),
  "/room": async (request, env) => (await roomOf(env, "r").fetch("http://cell/facts")).json(),
  "/plain": async (request, env) => (await env.PLAIN.get(env.PLAIN.idFromName("p")).fetch("http://cell/x")).json(),
  "/fields": async (request, env) => (await env.FIELDS.get(env.FIELDS.idFromName("f")).fetch("http://cell/x", { method: "PUT" })).json(),
  "/rpc": async (request, env) => {
    const room = roomOf(env, "r");
    using counter = await room.counter();
    await counter.add(2);
    return [
      await room.add(1, 2), await room.facts(), await room.inherited(), await counter.add(3), await counter.count, await room.property,
      await attempt(() => room.throws()), await attempt(() => room.missing()), await attempt(() => room.field),
    ];
  },
  "/plain-rpc": async (request, env) => attempt(() => env.PLAIN.get(env.PLAIN.idFromName("p")).anything()),
  "/exports": async (request, env, ctx) => {
    using counter = await ctx.exports.Named.counter();
    return [
      await ctx.exports.Named.hello("you"), await counter.add(5), await (await ctx.exports.Named.fetch("http://x/")).json(),
      await (await ctx.exports.objectEntrypoint.fetch("http://x/")).text(), await (await ctx.exports.default.fetch("http://x/echo")).json(),
      (await ctx.exports.Room.get(ctx.exports.Room.idFromName("r")).facts()).name,
    ];
  },
  "/globals": () => ({
    accept: [WebSocket.prototype.accept.name, WebSocket.prototype.accept.length, Object.keys(Object.getOwnPropertyDescriptor(WebSocket.prototype, "accept")).sort()],
    globals: Object.getOwnPropertyNames(globalThis).sort(),
    roomName: Room.name,
    roomIsFunction: typeof Room,
  }),
  "/echo": async (request) => ({
    method: request.method, url: request.url, headers: [...request.headers], cf: request.cf ?? null, redirect: request.redirect,
    hasBody: request.body !== null, bodyUsed: request.bodyUsed, text: await request.text(), used: request.bodyUsed,
  }),
  "/id": async (request, env) => [env.ROOM.idFromName("r").toString(), env.ROOM.idFromName("r").equals(env.ROOM.idFromString(env.ROOM.idFromName("r").toString()))],
};

const handler = {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/alarm" || pathname === "/alarmed") return roomOf(env, "alarms").fetch(request);
    if (pathname === "/answer") return new Response("body", { status: 418, statusText: "Teapot", headers: [["a", "1"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]] });
    if (pathname === "/empty") return new Response(null, { status: 204 });
    if (pathname === "/redirect") return Response.redirect("http://elsewhere/", 307);
    if (pathname === "/stream") {
      const { readable, writable } = new TransformStream();
      const write = async () => { const writer = writable.getWriter(); for (const part of ["one ", "two"]) { await writer.write(new TextEncoder().encode(part)); } await writer.close(); };
      ctx.waitUntil(write());
      return new Response(readable);
    }
    const route = routes[pathname];
    return route === undefined ? new Response("no such route", { status: 404 }) : Response.json(await route(request, env, ctx, this) ?? null);
  },
};
export default handler;
`;
