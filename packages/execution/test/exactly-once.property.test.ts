import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { type ExecutionError, RouterClient } from "../src/index.ts";
import { failureOf, tokenFile } from "./support/client.ts";
import { answer, type RawRouter, rawRouter, refusal } from "./support/raw-router.ts";
import { moteRequest, succeeded } from "./support/requests.ts";

const runs = { seed: inject("seed"), numRuns: inject("size") === "long" ? 2_000 : 60 };

/** What a router or the way to it does with a submission. */
const faults = [
  "none",
  "lost before",
  "lost after",
  "unavailable",
  "post lost",
  "post arrived, answer lost",
  "401",
  "dispatcher's 401",
  "at capacity",
  "proxy's 400",
  "proxy's 400 in JSON",
] as const;
type Fault = (typeof faults)[number];

/** A router as the protocol has it: it binds an id to bytes, and posts them to a dispatcher once. */
class ModelRouter {
  readonly bodies = new Set<string>();
  posts = 0;
  runs = 0;
  /** Whether the dispatcher did not admit the one post. */
  refused = false;
  readonly #faults: Fault[];
  #claimed: string | undefined;

  constructor(given: readonly Fault[]) {
    this.#faults = [...given];
  }

  submit(body: string): string | undefined {
    this.bodies.add(body);
    const fault = this.#faults.shift() ?? "none";
    if (fault === "lost before") return undefined;
    if (fault === "401") return refusal(401, "unauthorized");
    if (fault === "proxy's 400") return answer(400, "<html>");
    if (fault === "proxy's 400 in JSON") return refusal(400, "bad request");
    const reply = this.#claim(body, fault);
    return fault === "lost after" ? undefined : reply;
  }

  read(): string {
    if (this.#claimed === undefined) return refusal(404, "unknown execution");
    if (this.runs > 0) return answer(200, succeeded("run-1"));
    return refusal(503, "recorded owner unavailable or outcome lost; no reroute or replay");
  }

  #claim(body: string, fault: Fault): string {
    if (this.#claimed !== undefined) {
      return this.#claimed === body
        ? this.read()
        : refusal(409, "execution id already binds different request bytes");
    }
    if (fault === "unavailable")
      return refusal(503, "ownership unavailable; retry same request without changing id");
    this.#claimed = body;
    this.posts++;
    // The dispatcher was given another token than the router: its answer is passed on as it is.
    if (fault === "dispatcher's 401") return refusal(401, "unauthorized");
    if (fault === "at capacity") {
      this.refused = true;
      return answer(503, { error: "node at capacity", reason: "at_capacity" });
    }
    if (fault !== "post lost") this.runs++;
    if (fault === "none" || fault === "lost after")
      return answer(202, { requestId: "run-1", phase: "Admitting" });
    return refusal(503, "submission outcome unknown; owner retained; POST will not be replayed");
  }
}

async function serve(model: ModelRouter): Promise<RawRouter> {
  return rawRouter(({ line, body }, _, socket) => {
    const reply = line.startsWith("POST /v1/executions ") ? model.submit(body) : model.read();
    if (reply === undefined) socket.destroy();
    return reply;
  });
}

test("whatever is lost on the way, the work runs at most once, the bytes stay, and what is told is true", async () => {
  const token = await tokenFile();
  const course = fc.array(fc.constantFrom(...faults), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(course, async (given) => {
      const model = new ModelRouter(given);
      await using router = await serve(model);
      const options = { url: router.url, tokenFile: token, pollMinMs: 1, pollMaxMs: 2, submitTimeoutMs: 60 };
      const submission = new RouterClient(options).prepare(moteRequest("run-1"));
      const failure = await failureOf(submission.send().then(() => Promise.reject(undefined)));
      if (failure !== undefined) expectTruth(failure as ExecutionError, model);
      // Whoever starts anew with the kept bytes comes to the same end, or is told that nobody knows.
      const again = new RouterClient(options).prepare(submission.bytes);
      const second = await failureOf(again.send().then(() => Promise.reject(undefined)));
      if (second === undefined) expect((await again.result()).phase).toBe("Succeeded");
      else expectTruth(second as ExecutionError, model);
      expect(model.bodies.size).toBe(1);
      expect(model.posts).toBeLessThanOrEqual(1);
      expect(model.runs).toBe(second === undefined ? 1 : model.runs);
    }),
    runs,
  );
});

/** An error that says "not sent" must be right, and no error may send a caller to a new id while work may run. */
function expectTruth(error: ExecutionError, model: ModelRouter): void {
  expect(error.code).toMatch(
    /^CELLKIT_EXECUTION_(DEADLINE|UNAUTHORIZED|AT_CAPACITY|REQUEST_REFUSED|UNEXPECTED_ANSWER)$/,
  );
  if (model.posts > 0 && !model.refused) expect(error.next).not.toBe("never");
  if (error.sent === "no") expect(model.posts).toBe(0);
}
