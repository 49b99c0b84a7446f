// `npm start`: the chat on a fleet of its own, from nothing to a message on a WebSocket. Ends by itself and leaves nothing.

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CellSocket, createFetch, Fleet } from "@cellkit/client";
import { startLocalFleet } from "cellkit";

const project = fileURLToPath(new URL("..", import.meta.url));
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const directory = await mkdtemp(join(tmpdir(), "cellkit-chat-"));
try {
  const local = await startLocalFleet({ directory, project, onProgress: say });
  try {
    await visit(local.nodes.map(({ publicUrl }) => publicUrl));
  } finally {
    await local.close();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
say("everything has ended");

/** Posts, reads and listens in one room, as an application with a client of the fleet does. */
async function visit(endpoints: readonly string[]): Promise<void> {
  const fleet = new Fleet({ authority: "http://chat.internal", endpoints });
  const fetch = createFetch(fleet);
  try {
    const posted = await fetch(`/rooms/lobby/messages?id=${randomUUID()}`, { method: "POST", body: "hello" });
    say(`posted: ${posted.status} ${await posted.text()}`);
    const read = await fetch("/rooms/lobby/messages");
    say(`read: ${read.status} ${await read.text()}`);

    const socket = new CellSocket(fleet, "/rooms/lobby/socket");
    socket.send("hello over a socket");
    for await (const message of socket) {
      say(`socket: ${message}`);
      if (String(message).includes("hello over a socket")) break;
    }
    const { code } = await socket.close();
    say(`socket closed with ${code}`);
  } finally {
    await fleet.close();
  }
}
