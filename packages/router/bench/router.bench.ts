// What the router costs: submissions and reads through it, beside the same ones at the dispatcher itself; and what waiting requests hold.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";

const SUBMITTER_COUNT = 64;
const SUBMISSION_COUNT = 512;
const SINGLE_COUNT = 64;
const READ_COUNT = 1_024;
const PARKED_COUNT = 1_000;

const filler = "a".repeat(300);
const token = "bench-client-bench-bench-bench-bench";
let idCount = 0;

interface Side {
  readonly child: ChildProcess;
  readonly port: number;
}

async function start(script: string, ...args: string[]): Promise<Side> {
  const child = fork(fileURLToPath(new URL(`support/${script}`, import.meta.url)), args, {
    execArgv: ["--conditions=@cellkit/source", "--expose-gc"],
  });
  const [port] = await once(child, "message");
  return { child, port: Number(port) };
}

function submission(id: string): string {
  const body = JSON.stringify({ apiVersion: "celln.dev/v1alpha1", id, filler });
  return `POST /v1/executions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}

function newSubmission(): string {
  idCount += 1;
  return submission(`run-${idCount}`);
}

function read(id: string): string {
  return `GET /v1/executions/${id} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`;
}

function open(port: number, request: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.write(request);
  return socket;
}

/** One call on a connection of its own, as all of this plane are. */
function call(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = open(port, request);
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
  });
}

interface Load {
  readonly callsPerSecond: number;
  /** Sorted. */
  readonly durationsMs: readonly number[];
}

async function load(
  port: number,
  {
    callerCount,
    callCount,
    request,
    status,
  }: { callerCount: number; callCount: number; request: () => string; status: number },
): Promise<Load> {
  const durationsMs: number[] = [];
  const startedMs = performance.now();
  let left = callCount;
  await Promise.all(
    Array.from({ length: callerCount }, async () => {
      while (left > 0) {
        left -= 1;
        const sentMs = performance.now();
        const answer = await call(port, request());
        durationsMs.push(performance.now() - sentMs);
        if (!answer.startsWith(`HTTP/1.1 ${status}`)) throw new TypeError(`answered ${answer.slice(0, 200)}`);
      }
    }),
  );
  const callsPerSecond = (callCount * 1000) / (performance.now() - startedMs);
  return { callsPerSecond, durationsMs: durationsMs.sort((one, other) => one - other) };
}

function p99({ durationsMs }: Load): number {
  return durationsMs[Math.floor(durationsMs.length * 0.99)] ?? Number.NaN;
}

const submissions = {
  callerCount: SUBMITTER_COUNT,
  callCount: SUBMISSION_COUNT,
  request: newSubmission,
  status: 202,
};
const singles = { ...submissions, callerCount: 1, callCount: SINGLE_COUNT };

/** Both sides of a comparison of loads. */
async function compare(
  measure: (port: number) => Promise<number>,
  prepare: (router: Side) => Promise<unknown>,
) {
  const dispatcher = await start("dispatcher-process.ts");
  const router = await start("router-process.ts", `http://127.0.0.1:${dispatcher.port}`);
  await prepare(router);
  return {
    subject: () => measure(router.port),
    against: () => measure(dispatcher.port),
    close: async () => {
      router.child.disconnect();
      dispatcher.child.disconnect();
    },
  };
}

const warmUp = (router: Side) => load(router.port, submissions);

interface Memory {
  rss: number;
  heap: number;
}

async function memoryOf({ child }: Side): Promise<Memory> {
  child.send("memory");
  const [figures] = await once(child, "message");
  return figures as Memory;
}

/** KiB for each of so many requests that wait for a dispatcher which never answers. */
async function parked(router: Side, dispatcherRequest: (at: number) => string): Promise<number> {
  const before = await memoryOf(router);
  const sockets = Array.from({ length: PARKED_COUNT }, (_, at) => open(router.port, dispatcherRequest(at)));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const after = await memoryOf(router);
  for (const socket of sockets) socket.destroy();
  return (after.rss - before.rss) / 1024 / PARKED_COUNT;
}

const direct = "the dispatcher itself: each execution journaled with two fsyncs";
const setting =
  "router, dispatcher and callers are processes of one machine; a connection for each call; ledger and journal on one disk";

export const benchmarks = [
  {
    name: "router/submit",
    subject: "new executions through the router: tokens, ledger, health, POST",
    against: direct,
    unit: "submissions/s",
    roundCount: 7,
    conditions: `${SUBMITTER_COUNT} submitters, ${SUBMISSION_COUNT} submissions a round; ${setting}`,
    setup: () => compare(async (port) => (await load(port, submissions)).callsPerSecond, warmUp),
  },
  {
    name: "router/single",
    subject: "the same with one submitter",
    against: direct,
    unit: "submissions/s",
    roundCount: 5,
    conditions: `one submitter, ${SINGLE_COUNT} submissions a round; ${setting}`,
    setup: () => compare(async (port) => (await load(port, singles)).callsPerSecond, warmUp),
  },
  {
    name: "router/p99",
    subject: "the 99th percentile of new executions through the router",
    against: direct,
    unit: "ms",
    roundCount: 5,
    conditions: `${SUBMITTER_COUNT} submitters, ${SUBMISSION_COUNT} submissions a round; lower is better; ${setting}`,
    setup: () => compare(async (port) => p99(await load(port, submissions)), warmUp),
  },
  {
    name: "router/read",
    subject: "reads through the router: tokens, ledger, GET",
    against: "the dispatcher itself, which has its records in memory",
    unit: "reads/s",
    roundCount: 7,
    conditions: `${SUBMITTER_COUNT} readers, ${READ_COUNT} reads a round; ${setting}`,
    setup: async () => {
      const reads = {
        callerCount: SUBMITTER_COUNT,
        callCount: READ_COUNT,
        request: () => read("run-read"),
        status: 200,
      };
      return compare(
        async (port) => (await load(port, reads)).callsPerSecond,
        async (router) => {
          await call(router.port, submission("run-read"));
          await load(router.port, reads);
        },
      );
    },
  },
  {
    name: "router/parked",
    subject: "memory of a submission whose dispatcher does not answer, its two connections included",
    against: "memory of a connection that sends nothing",
    unit: "KiB/request",
    roundCount: 1,
    conditions: `${PARKED_COUNT} at once; growth of the router's resident memory, after a collection; lower is better`,
    setup: async () => {
      const dispatcher = await start("dispatcher-process.ts");
      const routers: Side[] = [];
      const measure = async (request: (at: number) => string) => {
        const router = await start("router-process.ts", `http://127.0.0.1:${dispatcher.port}`);
        routers.push(router);
        return parked(router, request);
      };
      return {
        subject: () => measure((at) => submission(`held-${at}`)),
        against: () => measure(() => ""),
        close: async () => {
          for (const { child } of [...routers, dispatcher]) child.disconnect();
        },
      };
    },
  },
];
