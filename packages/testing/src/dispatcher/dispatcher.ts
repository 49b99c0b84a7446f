import type { CallKind } from "../core/call.ts";
import type { CallMatch, Fault } from "../core/fault.ts";
import type { RunEnd } from "../core/run-end.ts";
import type { ScriptStep } from "../core/script.ts";
import type { WaitOptions } from "../wait-until.ts";
import { DirectoryJournal } from "./directory-journal.ts";
import type { FaultOptions } from "./fault-list.ts";
import { createIdentity } from "./hash.ts";
import { MemoryJournal } from "./journal.ts";
import { LocalDispatcher } from "./local-dispatcher.ts";
import type { NodeOptions } from "./node-figures.ts";
import { type DispatcherOptions, resolveDispatcherOptions } from "./options.ts";
import type { RecordedCall } from "./transcript.ts";

/** A dispatcher that does what a test says, over real HTTP. */
export interface ScriptedDispatcher extends AsyncDisposable {
  /** `http://host:port`: what a router's list of backends has. */
  readonly origin: string;
  /** How often each execution was started, over all lives: the evidence that none ran twice. */
  readonly runs: ReadonlyMap<string, number>;
  /** Every call, in order, over all lives. */
  readonly calls: readonly RecordedCall[];
  /** False after it died, until it is restarted. */
  readonly alive: boolean;
  /**
   * From here on exactly these calls have to come, in this order. The first that is another one is reset, and so is every
   * later call; {@link verify} and {@link close} throw then, and also when calls are missing. Health, node and capability
   * calls are passed over unless the script names their kind. Bytes that are no whole request are a call, too: `other`.
   *
   * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) for a step that no call could follow
   */
  script(steps: readonly ScriptStep[]): void;
  /** @throws ScriptError (`CELLKIT_TESTING_SCRIPT`) when the script was not followed to its end. */
  verify(): void;
  /** Waits until the script is at its end. @throws ScriptError as soon as it is not followed, WaitTimeoutError */
  followed(options?: WaitOptions): Promise<void>;
  /**
   * Something goes wrong with the next call of this kind, or the next few.
   *
   * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) for calls and faults that there are not, and a fault that makes no sense for the call
   */
  fault(match: CallKind | CallMatch, fault: Fault, options?: FaultOptions): void;
  /** Forgets the faults that have not struck, and listens again. @throws ListenError */
  heal(): Promise<void>;
  /** Waits until so many calls of a kind have come, and answers the last of these. @throws WaitTimeoutError */
  received(match: CallKind | CallMatch, options?: WaitOptions & { count?: number }): Promise<RecordedCall>;
  /**
   * Ends an execution that is held, as soon as it is: the answer to its submission may come a moment earlier.
   *
   * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`), at once, when nothing holds it and nothing will; WaitTimeoutError
   */
  finish(id: string, end?: RunEnd, options?: WaitOptions): Promise<void>;
  /** Changes what it says of its node. @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) */
  change(node: NodeOptions): void;
  /** New connections are refused by the system, as of a process that is gone; what is connected goes on. */
  refuse(): Promise<void>;
  /** Dies: connections are reset, what runs is interrupted. */
  kill(): Promise<void>;
  /** A new life at the same origin, after killing the one before. @throws JournalError, ListenError */
  restart(options?: { journal?: "kept" | "lost" }): Promise<void>;
  /**
   * Stops listening and cuts what is open. Idempotent.
   *
   * @throws ScriptError (`CELLKIT_TESTING_SCRIPT`), once, when a script was not followed and no {@link verify} said so
   */
  close(): Promise<void>;
}

/**
 * Starts a dispatcher: a server that keeps the HTTP contract of the execution plane (execution API, section 10, without
 * parents and scoped operations), runs nothing, and does what the test says.
 *
 * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`), JournalError (`CELLKIT_TESTING_JOURNAL`), ListenError
 * (`CELLKIT_TESTING_LISTEN`)
 */
export async function dispatcher(options: DispatcherOptions = {}): Promise<ScriptedDispatcher> {
  const resolved = resolveDispatcherOptions(options);
  const identity = await createIdentity();
  const journal =
    resolved.journal === undefined
      ? new MemoryJournal()
      : await DirectoryJournal.open(resolved.journal, identity);
  const local = new LocalDispatcher(resolved, journal, identity);
  try {
    await local.restart();
  } catch (error) {
    await local.close();
    throw error;
  }
  return local;
}
