import type { LaggingNode } from "@cellkit/peer";

/** The base class of everything this package throws. Match on `code`. */
export abstract class CliError extends Error {
  abstract override readonly name: string;
  abstract readonly code: `CELLKIT_CLI_${string}`;
}

/** A local fleet was asked for something that it does not have, or after its close. The message says what. */
export class LocalFleetError extends CliError {
  override readonly name = "LocalFleetError";
  readonly code = "CELLKIT_CLI_LOCAL_FLEET";
}

/** A process of a local fleet did not come up. The message ends with its own reason. */
export class ProcessStartError extends CliError {
  override readonly name = "ProcessStartError";
  readonly code = "CELLKIT_CLI_PROCESS_START";
  /** `bucket`, `node-1`, … */
  readonly process: string;

  constructor(process: string, reason: string, options?: ErrorOptions) {
    super(`${process} did not start: ${reason}`, options);
    this.process = process;
  }
}

/** A process that a command cannot go on without ended by itself. */
export class ProcessEndedError extends CliError {
  override readonly name = "ProcessEndedError";
  readonly code = "CELLKIT_CLI_PROCESS_ENDED";
  /** `bucket`, `node-1`, … */
  readonly process: string;

  constructor(process: string, reason: string, options?: ErrorOptions) {
    super(`${process} ended: ${reason}; start this command again`, options);
    this.process = process;
  }
}

/** A directory is no Wrangler project, or its configuration does not fit. Every problem is in the message. */
export class ProjectError extends CliError {
  override readonly name = "ProjectError";
  readonly code = "CELLKIT_CLI_PROJECT";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;
}

/** The system refused to watch a directory. */
export class WatchError extends CliError {
  override readonly name = "WatchError";
  readonly code = "CELLKIT_CLI_WATCH";
  readonly directory: string;

  constructor(directory: string, reason: string, options?: ErrorOptions) {
    super(
      `${directory} cannot be watched (${reason}): raise fs.inotify.max_user_watches and max_user_instances, or give --no-watch`,
      options,
    );
    this.directory = directory;
  }
}

/** A file with a fleet's key cannot be read, or holds none. The message shows nothing of it. */
export class KeyFileError extends CliError {
  override readonly name = "KeyFileError";
  readonly code = "CELLKIT_CLI_KEY_FILE";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;
  readonly file: string;

  /** `reason`, a whole sentence: why the file cannot be read; without it, it holds no key. */
  constructor(file: string, options: ErrorOptions & { reason?: string } = {}) {
    const { reason, ...rest } = options;
    super(
      reason === undefined
        ? `${file} holds no fleet key; give it the object fleet/peer-auth.json, or its 64 hex digits`
        : `--key-file: ${reason}`,
      rest,
    );
    this.file = file;
  }
}

/** Nodes did not follow a step of a key rotation. The fleet works on; the same command goes on from there. */
export class RotationWaitError extends CliError {
  override readonly name = "RotationWaitError";
  readonly code = "CELLKIT_CLI_ROTATION_WAIT";
  /** The process ends with 3: the key is not replaced, and nothing is broken. */
  readonly exitCode = 3;
  readonly nodes: readonly LaggingNode[];

  constructor(phase: string, nodes: readonly LaggingNode[], afterMs: number, options?: ErrorOptions) {
    const who = nodes.map(({ node, reason }) => `${node} ${reason}`).join(", ");
    super(
      `the rotation stays at ${phase} after ${Math.round(afterMs / 1_000)} s: ${who}; stop or mend these, then run the same command again`,
      options,
    );
    this.nodes = nodes;
  }
}

/** An address names no ledger that can be opened, or an option does not fit its store. The message shows no password. */
export class LedgerPlaceError extends CliError {
  override readonly name = "LedgerPlaceError";
  readonly code = "CELLKIT_CLI_LEDGER_PLACE";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;
}

/** No ledger was ever created at an address. The message says what to look for, and how one is made. */
export class LedgerAbsentError extends CliError {
  override readonly name = "LedgerAbsentError";
  readonly code = "CELLKIT_CLI_LEDGER_ABSENT";
}

/** The file of an import cannot be read. */
export class ImportFileError extends CliError {
  override readonly name = "ImportFileError";
  readonly code = "CELLKIT_CLI_IMPORT_FILE";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;

  constructor(file: string, reason: string, options?: ErrorOptions) {
    super(
      `${file} cannot be read (${reason}): give what cellkit ledger export wrote, or - for standard input`,
      options,
    );
  }
}

/** What a call was to send, or how, does not fit. The message says what to give instead. */
export class CallInputError extends CliError {
  override readonly name = "CallInputError";
  readonly code = "CELLKIT_CLI_CALL_INPUT";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;
}

/** A call failed, and the command knows more of it than the library. The message says whether it may have run. */
export class CallFailedError extends CliError {
  override readonly name = "CallFailedError";
  readonly code = "CELLKIT_CLI_CALL_FAILED";
}

/** A file with ids of runs cannot be read, or has none. */
export class IdFileError extends CliError {
  override readonly name = "IdFileError";
  readonly code = "CELLKIT_CLI_ID_FILE";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;

  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(`${path === "-" ? "standard input" : path} gives no ids (${reason})`, options);
  }
}

/** A rotation of tokens stays at a step: a place does not follow. Nothing of a token is in the message. */
export class TokenRotationError extends CliError {
  override readonly name = "TokenRotationError";
  readonly code = "CELLKIT_CLI_TOKEN_ROTATION";
  /** The process ends with 3. */
  readonly exitCode = 3;
  readonly step: string;

  constructor(
    step: string,
    lagging: readonly { readonly place: string; readonly reason: string }[],
    options?: ErrorOptions,
  ) {
    super(
      `the rotation stays at ${step}: ${lagging.map(({ place, reason }) => `${place} ${reason}`).join(", ")}; mend this, then run the same command again`,
      options,
    );
    this.step = step;
  }
}

/** Files of tokens that no rotation can begin with. Nothing of a token is in the message. */
export class TokenFilesError extends CliError {
  override readonly name = "TokenFilesError";
  readonly code = "CELLKIT_CLI_TOKEN_FILES";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;

  constructor(problem: string, options?: ErrorOptions) {
    super(`${problem}; nothing was rotated`, options);
  }
}

/** A router cannot be reached as it was told: a file of certificates, or what TLS says of them. */
export class RouterAccessError extends CliError {
  override readonly name = "RouterAccessError";
  readonly code = "CELLKIT_CLI_ROUTER_ACCESS";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;
}

/** The command that was to do a step did not end with 0. */
export class StepCommandError extends CliError {
  override readonly name = "StepCommandError";
  readonly code = "CELLKIT_CLI_STEP_COMMAND";

  /** @param end how it ended */
  constructor(step: string, end: string, options?: ErrorOptions) {
    super(
      `the command for ${step} ended with ${end}: see its own words above, then run the same command again`,
      options,
    );
  }
}

/** What a qualification of executions was given cannot be used: a request that is none, a token file. */
export class QualificationInputError extends CliError {
  override readonly name = "QualificationInputError";
  readonly code = "CELLKIT_CLI_QUALIFICATION_INPUT";
  /** The process ends with 2: a further try cannot help. */
  readonly exitCode = 2;
}

/** An operator's command in a qualification did not end with 0; the check that needed it failed. */
export class HookError extends CliError {
  override readonly name = "HookError";
  readonly code = "CELLKIT_CLI_HOOK";

  readonly hook: string;
  readonly end: string;

  /** @param end how it ended */
  constructor(hook: string, end: string, options?: ErrorOptions) {
    super(
      `the command of --${hook} ended with ${end}: what it had to do was not done, or not wholly`,
      options,
    );
    this.hook = hook;
    this.end = end;
  }
}
