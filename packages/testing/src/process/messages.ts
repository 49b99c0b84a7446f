// What a test and a dispatcher in a process of its own say to each other.
import type { CallKind } from "../core/call.ts";
import type { CallMatch, Fault } from "../core/fault.ts";
import type { RunEnd } from "../core/run-end.ts";
import type { FaultOptions } from "../dispatcher/fault-list.ts";
import type { NodeOptions } from "../dispatcher/node-figures.ts";
import type { RunMode } from "../dispatcher/running-execution.ts";
import type { RecordedCall } from "../dispatcher/transcript.ts";

/** Options of {@link dispatcherProcess}: those of `dispatcher` that another process can take. */
export interface DispatcherProcessOptions {
  /** The directory of its journal, by which it is known what ran. */
  readonly journal: string;
  /** @default testBackendToken */
  readonly token?: string;
  /** Read anew for each call. */
  readonly tokenFile?: string;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** @default 0, any free one; a restart takes the same again */
  readonly port?: number;
  readonly node?: NodeOptions;
  /** @default "succeed" */
  readonly run?: RunMode;
}

/** A fault that another process can be told. */
export type ProcessFault = Exclude<Fault, { kind: "held" }>;

/** What a test wants. */
export type Command =
  | { readonly kind: "start"; readonly options: DispatcherProcessOptions }
  | {
      readonly kind: "fault";
      readonly match: CallKind | CallMatch;
      readonly fault: ProcessFault;
      readonly options: FaultOptions;
    }
  | { readonly kind: "heal" }
  | { readonly kind: "refuse" }
  | { readonly kind: "change"; readonly node: NodeOptions }
  | { readonly kind: "finish"; readonly id: string; readonly end: RunEnd | undefined }
  | { readonly kind: "calls" };

export interface CommandMessage {
  readonly sequence: number;
  readonly command: Command;
}

/** What came of a command. */
export type Reply =
  | {
      readonly sequence: number;
      readonly kind: "done";
      readonly origin: string;
      readonly calls: readonly RecordedCall[];
    }
  | { readonly sequence: number; readonly kind: "failed"; readonly message: string };
