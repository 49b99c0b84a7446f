// The router's own ends of connections, as Node tells of them, for what no caller and no dispatcher can see.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Collects the sockets that are made from now on until the end of the test: `accepted` by a server, or `made` by whoever connects. */
export function watchSockets(): { readonly accepted: readonly Socket[]; readonly made: readonly Socket[] } {
  const [accepted, made]: [Socket[], Socket[]] = [[], []];
  const watch = (channel: string, sockets: Socket[]) => {
    const hear = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
    subscribe(channel, hear);
    onTestFinished(() => void unsubscribe(channel, hear));
  };
  watch("net.server.socket", accepted);
  watch("net.client.socket", made);
  return { accepted, made };
}
