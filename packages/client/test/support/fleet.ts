import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Dispatcher } from "undici";
import { onTestFinished } from "vitest";
import { type Attempt, attemptsOf } from "../../src/attempts.ts";
import { Fleet } from "../../src/fleet.ts";
import type { FleetDispatchOptions, FleetOptions } from "../../src/options.ts";

export const authority = "http://app.internal";

/** A busy machine may hold this process up for longer than the 2 s that a connect may take otherwise. */
const pool = { connect: { timeout: 20_000 } };

/** A fleet over the nodes' URLs; health probes are on unless told otherwise. */
export function fleetOf(nodes: readonly { url: string }[], options: Partial<FleetOptions> = {}): Fleet {
  return new Fleet({ authority, endpoints: nodes.map(({ url }) => url), pool, ...options });
}

/** What a test looks at: status, headers, whole body, attempts. */
export interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
  readonly attempts: readonly Attempt[];
  readonly classes: readonly string[];
}

/** A request whose body is read to its end. */
export async function ask(
  fleet: Fleet,
  options: Partial<FleetDispatchOptions> & { signal?: AbortSignal } = {},
): Promise<Answer> {
  const request = { method: "GET", path: "/", ...options } as Dispatcher.RequestOptions;
  const response = await fleet.request(request);
  const text = await response.body.text();
  const attempts = attemptsOf(response);
  const classes = attempts.map((attempt) => attempt.class);
  return { status: response.statusCode, headers: response.headers, text, attempts, classes };
}

/** The error that a promise rejects with. */
export async function failure(
  promise: Promise<unknown>,
): Promise<Error & { code?: string; attempts?: Attempt[] }> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new TypeError(`rejected with ${String(error)}, not an Error`);
  }
  throw new TypeError("it did not reject");
}

/** A retry as a fleet planned it. */
export interface PlannedRetry {
  readonly class: string;
  readonly from: string;
  readonly free: boolean;
  readonly delayMs: number;
}

/** The retries that are planned during the test. How long one really waits depends on the machine, too. */
export function plannedRetries(): PlannedRetry[] {
  const planned: PlannedRetry[] = [];
  const listener = (message: unknown): void => void planned.push(message as PlannedRetry);
  subscribe("fleet:retry", listener);
  onTestFinished(() => void unsubscribe("fleet:retry", listener));
  return planned;
}

/** Chance that always picks the first candidate first, so that a test knows which node is asked. */
export const alwaysFirst = { random: () => 0 };

/** An answer in bytes. */
export function raw(status: string, headers: string[], body = ""): string {
  return `HTTP/1.1 ${status}\r\n${[...headers, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
}
