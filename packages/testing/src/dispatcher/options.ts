import { readFileSync } from "node:fs";
import { parseToken } from "@cellkit/execution";
import { anything, callable, checkMembers, text } from "../core/given.ts";
import { TestingOptionError } from "../errors.ts";
import { testBackendToken } from "../tokens.ts";
import { checkedNode, type NodeOptions } from "./node-figures.ts";
import { checkedRun, type RunFn, type RunMode } from "./running-execution.ts";

/** Options of {@link dispatcher}. */
export interface DispatcherOptions {
  /** The bearer that callers need, 24 to 4,096 visible ASCII characters. @default testBackendToken */
  readonly token?: string;
  /** A file with that bearer, read anew for each call; not together with `token`. An unusable one makes calls answer 503. */
  readonly tokenFile?: string;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** @default 0, any free one; a restart takes the same again */
  readonly port?: number;
  /** What it says of its node. @default a node that takes everything */
  readonly node?: NodeOptions;
  /**
   * How executions go. A function runs each; `succeed` ends each at once, with the output `ok`; `{ afterMs }` does so later;
   * `hold` leaves each `Running` until {@link ScriptedDispatcher.finish} or a cancel. @default "succeed"
   */
  readonly run?: RunFn | RunMode;
  /**
   * A directory for the journal, with fsyncs: an empty one, one that is not there yet, or that of an earlier start; of one dispatcher at a
   * time. @default none: it lives as long as the test
   */
  readonly journal?: string;
  /**
   * How a prewarm goes: what it waits for, no longer than the request's `timeoutMs` and 30 s, and then shows as `verification`. When it
   * throws, the prewarm is refused, and the message is the reason. @default nothing
   */
  readonly prewarm?: () => unknown;
  /** Called when it dies of a fault, in place of dying within this process. @default none */
  readonly onDeath?: () => void;
}

export interface ResolvedDispatcherOptions {
  /** The credential as it is; undefined when it is unusable. */
  readonly token: () => string | undefined;
  readonly host: string;
  readonly port: number;
  readonly node: NodeOptions;
  readonly run: RunFn | RunMode;
  readonly journal: string | undefined;
  readonly prewarm: () => unknown;
  readonly onDeath: (() => void) | undefined;
}

const optionRules = {
  token: anything,
  tokenFile: text,
  host: text,
  port: anything,
  node: anything,
  run: anything,
  journal: text,
  prewarm: callable,
  onDeath: callable,
};

/** @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`) */
export function resolveDispatcherOptions(options: DispatcherOptions): ResolvedDispatcherOptions {
  checkMembers("options", options, optionRules);
  const { token, tokenFile, port = 0 } = options;
  if (token !== undefined && tokenFile !== undefined) {
    throw new TestingOptionError("token", "and tokenFile exclude each other");
  }
  const parsed = parseToken(Buffer.from(token ?? testBackendToken));
  if ("problem" in parsed) throw new TestingOptionError("token", parsed.problem);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TestingOptionError("port", `is ${port}; give 0 to 65535`);
  }
  return {
    token: tokenFile === undefined ? () => parsed.token : () => tokenIn(tokenFile),
    host: options.host ?? "127.0.0.1",
    port,
    node: checkedNode(options.node ?? {}),
    run: checkedRun(options.run ?? "succeed"),
    journal: options.journal,
    prewarm: options.prewarm ?? (() => null),
    onDeath: options.onDeath,
  };
}

function tokenIn(path: string): string | undefined {
  try {
    const parsed = parseToken(readFileSync(path));
    return "token" in parsed ? parsed.token : undefined;
  } catch {
    // As a dispatcher does: the call is answered that there is no credential, whatever the reason.
    return undefined;
  }
}
