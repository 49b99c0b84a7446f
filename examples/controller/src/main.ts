// `npm start`: work that runs once though the router is killed in the middle, and then the controller. Ends by itself and leaves nothing.
import { ranAtMostOnce, until } from "@cellkit/testing";
import { Controller, type Resumed } from "./controller.ts";
import { Plane } from "./plane.ts";
import { primes } from "./request.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const batch = "tour";

const plane = await Plane.start(400);
try {
  const stopped = new AbortController();
  const first = new Controller(plane.client(), plane.work, { retryMs: 100, signal: stopped.signal });
  const begun = [10, 20, 30].map((count) => first.run(primes(batch, count)));
  const ended = Promise.allSettled(begun);
  await until("three starts", () => plane.dispatchers.reduce((sum, { runs }) => sum + runs.size, 0) === 3);
  await plane.killRouter();
  say("the router was killed while three executions ran");
  stopped.abort();
  await ended;
  say("the controller stopped; what it had begun lies in its directory");

  const second = new Controller(plane.client(), plane.work, { retryMs: 100 });
  const resumed = second.resume();
  await plane.startRouter();
  say("another controller goes on over the same directory, and a router over the same ledger:");
  for (const [id, outcome] of await resumed) say(`  ${id}: ${told(outcome)}`);

  const starts = ranAtMostOnce(...plane.dispatchers);
  say(`${starts.size} executions were started, each once`);
} finally {
  await plane.close();
}

function told(outcome: Resumed): string {
  if (outcome.kind === "failed") return String(outcome.error);
  if (outcome.kind === "stuck") return `${outcome.code}, ${outcome.next}`;
  const { phase, receipt } = outcome.record;
  return `${phase} on ${receipt?.node}, output ${receipt?.output?.hash.slice(0, 20)}…`;
}
