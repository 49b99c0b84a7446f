import { parseToken } from "@cellkit/execution";
import { TestingOptionError } from "../errors.ts";
import type { NodeOptions } from "./node-figures.ts";
import type { RunFn } from "./running-execution.ts";

/** The token of dispatchers that were given none. */
export const testBackendToken = "backend-token-for-tests-only";

/** Options of {@link dispatcher}. */
export interface DispatcherOptions {
  /** The bearer that callers need, 24 to 4,096 visible ASCII characters; read anew for each call when it is a function. @default testBackendToken */
  readonly token?: string | (() => string);
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** @default 0, any free one; a restart takes the same again */
  readonly port?: number;
  /** What it says of its node. @default a node that takes everything */
  readonly node?: NodeOptions;
  /**
   * How executions go. A function runs each; `succeed` ends each at once, with the output `ok`; `hold` leaves each `Running`
   * until {@link ScriptedDispatcher.finish} or a cancel. @default "succeed"
   */
  readonly run?: RunFn | "succeed" | "hold";
  /** A directory for the journal, with fsyncs. @default none: it lives as long as the test */
  readonly journal?: string;
  /** How long a prewarm takes: what it waits for, and then shows as `verification`. @default nothing */
  readonly prewarm?: () => unknown;
  /** Called when it dies of a fault, in place of dying within this process. @default none */
  readonly onDeath?: () => void;
}

export interface ResolvedDispatcherOptions {
  readonly token: () => string;
  readonly host: string;
  readonly port: number;
  readonly node: NodeOptions;
  readonly run: RunFn | "succeed" | "hold";
  readonly journal: string | undefined;
  readonly prewarm: () => unknown;
  readonly onDeath: (() => void) | undefined;
}

/** @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`) */
export function resolveDispatcherOptions(options: DispatcherOptions): ResolvedDispatcherOptions {
  const { token = testBackendToken, port = 0 } = options;
  if (typeof token === "string") {
    const parsed = parseToken(Buffer.from(token));
    if ("problem" in parsed) throw new TestingOptionError("token", parsed.problem);
  }
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TestingOptionError("port", `is ${port}; give 0 to 65535`);
  }
  return {
    token: typeof token === "string" ? () => token : token,
    host: options.host ?? "127.0.0.1",
    port,
    node: options.node ?? {},
    run: options.run ?? "succeed",
    journal: options.journal,
    prewarm: options.prewarm ?? (() => null),
    onDeath: options.onDeath,
  };
}
