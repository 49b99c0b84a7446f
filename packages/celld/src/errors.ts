/** The base class of what this package throws itself. Match on `code`. */
export abstract class CelldError extends Error {
  abstract override readonly name: string;
  abstract readonly code: `CELLKIT_CELLD_${string}`;
}

/** This node lost its lease: peers may own its cells. It ends at once with exit code 3; start it again. */
export class FencedError extends CelldError {
  override readonly name = "FencedError";
  readonly code = "CELLKIT_CELLD_FENCED";
  /** The process ends with 3. */
  readonly exitCode = 3;

  constructor(detail: string, options?: ErrorOptions) {
    super(`SELF-FENCE: ${detail}; peers may own its cells, so this process ends: start it again`, options);
  }
}

/** The drain's bound passed before everything was handed over; what was left has been cut off. */
export class DrainTimeoutError extends CelldError {
  override readonly name = "DrainTimeoutError";
  readonly code = "CELLKIT_CELLD_DRAIN_TIMEOUT";
  /** The process ends with 4. */
  readonly exitCode = 4;
}
