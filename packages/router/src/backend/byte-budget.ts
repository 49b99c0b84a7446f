/** Bytes that many answers share, so that large ones cannot fill the memory together. */
export class ByteBudget {
  readonly #limitBytes: number;
  #takenBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Takes some, unless that would be too many. */
  take(bytes: number): boolean {
    if (this.#takenBytes + bytes > this.#limitBytes) return false;
    this.#takenBytes += bytes;
    return true;
  }

  /** Gives some back. */
  give(bytes: number): void {
    this.#takenBytes -= bytes;
  }
}
