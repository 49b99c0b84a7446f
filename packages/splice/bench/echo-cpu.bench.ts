// What boundaries cost: CPU time of the splice's process beside a process that only pipes bytes both ways.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CONNECTION_COUNT = 16;
const REQUEST_COUNT = 4_000;
const WARM_UP_COUNT = 20_000;

const request =
  "GET /hello?x=1 HTTP/1.1\r\nHost: hello.example\r\nUser-Agent: cellkit-bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n";
const answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n\r\nhello work";

const script = fileURLToPath(new URL("support/relay-process.ts", import.meta.url));

interface Relay {
  child: ChildProcess;
  port: number;
}

async function startRelay(kind: "splice" | "pipe", path: string): Promise<Relay> {
  const child = fork(script, [kind, path], { execArgv: ["--conditions=@cellkit/source"] });
  const [port] = await once(child, "message");
  return { child, port: Number(port) };
}

async function cpuMicroseconds({ child }: Relay): Promise<number> {
  child.send("cpu");
  const [figure] = await once(child, "message");
  return Number(figure);
}

/** Sends the requests over kept connections, one at a time on each. */
async function load(port: number, requestCount: number): Promise<void> {
  let unsent = requestCount;
  const work = async () => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    while (unsent > 0) {
      unsent -= 1;
      socket.write(request);
      let received = 0;
      while (received < answer.length) received += ((await once(socket, "data"))[0] as Buffer).length;
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: CONNECTION_COUNT }, work));
}

export const benchmarks = [
  {
    name: "splice/echo-cpu",
    subject: "the splice: both trackers, a header put in, the local hook",
    against: "pipe() in both directions",
    unit: "CPU us/request",
    roundCount: 15,
    conditions:
      `GET and an answer of 10 bytes, ${REQUEST_COUNT} requests a round over ${CONNECTION_COUNT} kept connections, ` +
      "scripted upstream on a unix socket; CPU time of the relay's process alone",
    async setup() {
      const directory = await mkdtemp(join(tmpdir(), "cellkit-bench-"));
      const path = join(directory, "upstream.sock");
      const upstream = createServer((socket) => {
        socket.on("data", () => socket.write(answer));
        socket.on("error", () => socket.destroy());
      });
      await new Promise<void>((resolve) => upstream.listen(path, resolve));
      const splice = await startRelay("splice", path);
      const pipe = await startRelay("pipe", path);
      const measure = async (relay: Relay) => {
        const before = await cpuMicroseconds(relay);
        await load(relay.port, REQUEST_COUNT);
        return ((await cpuMicroseconds(relay)) - before) / REQUEST_COUNT;
      };
      for (const { port } of [splice, pipe]) await load(port, WARM_UP_COUNT);
      return {
        subject: () => measure(splice),
        against: () => measure(pipe),
        close: async () => {
          splice.child.disconnect();
          pipe.child.disconnect();
          upstream.close();
          await rm(directory, { recursive: true });
        },
      };
    },
  },
];
