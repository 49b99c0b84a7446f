// What the rules cost: requests for each CPU second of the edge's process, beside node:https with undici behind it and no rules.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { TestCa, type TestPair } from "../test/support/certificates.ts";

const CONNECTION_COUNT = 16;
const REQUEST_COUNT = 3_000;
const WARM_UP_COUNT = 12_000;

const body = JSON.stringify({ id: "run-1", filler: "a".repeat(1_000) });
const submission =
  "POST /v1/executions HTTP/1.1\r\nHost: edge.example\r\nAuthorization: Bearer bench-bench-bench-bench\r\nPrefer: respond-async\r\n" +
  `User-Agent: cellkit-bench\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const record = JSON.stringify({ id: "run-1", state: "accepted", filler: "b".repeat(300) });
const answer = `HTTP/1.1 202 OK\r\nContent-Type: application/json\r\nContent-Length: ${record.length}\r\n\r\n${record}`;

const script = fileURLToPath(new URL("support/edge-process.ts", import.meta.url));

interface Side {
  child: ChildProcess;
  port: number;
}

async function start(kind: "edge" | "plain", origin: string, pair: TestPair): Promise<Side> {
  const child = fork(script, [kind, origin, JSON.stringify(pair)], {
    execArgv: ["--conditions=@cellkit/source"],
  });
  const [port] = await once(child, "message");
  return { child, port: Number(port) };
}

async function cpuMicroseconds({ child }: Side): Promise<number> {
  child.send("cpu");
  const [figure] = await once(child, "message");
  return Number(figure);
}

/** Sends the requests over kept connections, one at a time on each. */
async function load(port: number, ca: string, requestCount: number): Promise<void> {
  let unsent = requestCount;
  const work = async () => {
    const socket = connect({ host: "127.0.0.1", port, ca });
    await once(socket, "secureConnect");
    while (unsent > 0) {
      unsent -= 1;
      socket.write(submission);
      let text = "";
      while (!text.endsWith(record)) text += String((await once(socket, "data"))[0]);
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: CONNECTION_COUNT }, work));
}

/** A backend that answers every whole request the same. */
async function startBackend() {
  const server = createServer((socket) => {
    let text = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (!text.endsWith(body)) return;
      text = "";
      socket.write(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

export const benchmarks = [
  {
    name: "edge/throughput",
    subject: "the edge in execution mode: decision, body and answer held until whole, bounds",
    against: "node:https, undici's Pool behind it, bodies streamed, no rules",
    unit: "requests/CPU s",
    roundCount: 15,
    conditions:
      `POST of ${body.length} bytes, answer of ${record.length}, ${REQUEST_COUNT} requests a round over ${CONNECTION_COUNT} kept TLS ` +
      "connections, one to the backend for each request; CPU time of the proxy's process alone",
    async setup() {
      const ca = new TestCa();
      const pair = ca.issue();
      const { server, origin } = await startBackend();
      const edge = await start("edge", origin, pair);
      const plain = await start("plain", origin, pair);
      const measure = async (side: Side) => {
        const before = await cpuMicroseconds(side);
        await load(side.port, ca.cert, REQUEST_COUNT);
        return (REQUEST_COUNT / ((await cpuMicroseconds(side)) - before)) * 1e6;
      };
      for (const { port } of [edge, plain]) await load(port, ca.cert, WARM_UP_COUNT);
      return {
        subject: () => measure(edge),
        against: () => measure(plain),
        close: async () => {
          edge.child.disconnect();
          plain.child.disconnect();
          server.close();
        },
      };
    },
  },
];
