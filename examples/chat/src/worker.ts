// The entry of the Worker: finds the room that a request is for and hands the request on.
import { json, methodRefusal, refusal } from "./answers.ts";
import { bodyLength } from "./body.ts";
import type { Room } from "./room.ts";
import { slow } from "./slow.ts";

export { Room } from "./room.ts";

/** What wrangler.jsonc binds. */
interface Env {
  ROOMS: DurableObjectNamespace<Room>;
}

const roomName = /^[A-Za-z0-9_-]{1,64}$/;

export default {
  async fetch(request, env): Promise<Response> {
    const url = new URL(request.url);
    const [, first, name] = url.pathname.split("/");
    if (first === "rooms" && name !== undefined && roomName.test(name)) {
      return env.ROOMS.getByName(name).fetch(request);
    }
    if (url.pathname === "/slow") return request.method === "GET" ? slow(url) : methodRefusal("GET");
    if (url.pathname === "/echo-length") {
      if (request.method !== "POST") return methodRefusal("POST");
      return json({ bytes: await bodyLength(request, Number.POSITIVE_INFINITY) });
    }
    return refusal(404, "try /rooms/NAME, /slow or /echo-length");
  },
} satisfies ExportedHandler<Env>;
