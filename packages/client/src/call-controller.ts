import type { Dispatcher } from "undici";
import type { AttemptRun } from "./attempt-run.ts";
import type { Attempt } from "./attempts.ts";
import type { HeldResponse } from "./held-response.ts";

/** The flow control that a caller's handler holds: it reaches whichever attempt is alive. */
export abstract class CallController implements Dispatcher.DispatchController {
  /** The live attempt, or the one whose response the caller has. */
  protected current: AttemptRun | undefined;
  /** Attempts before it. */
  protected past: AttemptRun[] | undefined;
  /** A response that is played from memory: its attempt is over. */
  protected held: HeldResponse | undefined;
  protected abortReason: Error | null = null;

  /** The clock that attempts are timed with, in milliseconds. */
  abstract readonly now: () => number;

  abstract abort(reason: Error): void;

  /** Everything tried, the live attempt included. */
  get attempts(): readonly Attempt[] {
    const runs = [...(this.past ?? []), ...(this.current === undefined ? [] : [this.current])];
    const wallMs = Date.now() - this.now();
    return runs.map((run) => run.toAttempt(wallMs));
  }

  get aborted(): boolean {
    return this.abortReason !== null;
  }

  get reason(): Error | null {
    return this.abortReason;
  }

  get paused(): boolean {
    return this.held?.paused ?? this.current?.controller?.paused ?? false;
  }

  get rawHeaders(): NonNullable<Dispatcher.DispatchController["rawHeaders"]> | null {
    return this.current?.controller?.rawHeaders ?? null;
  }

  get rawTrailers(): NonNullable<Dispatcher.DispatchController["rawTrailers"]> | null {
    return this.current?.controller?.rawTrailers ?? null;
  }

  pause(): void {
    if (this.held === undefined) this.current?.controller?.pause();
    else this.held.pause();
  }

  resume(): void {
    if (this.held === undefined) this.current?.controller?.resume();
    else this.held.resume();
  }
}
