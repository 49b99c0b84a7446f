/** What each answer may hold without being counted. */
export const freeBytes = 65_536;

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

  /**
   * Counts an answer that is there, whole, while it is passed on to its caller. It is never refused.
   * @returns to be called once, when it was passed on
   */
  hold(answerBytes: number): () => void {
    const bytes = Math.max(0, answerBytes - freeBytes);
    this.#takenBytes += bytes;
    return () => this.give(bytes);
  }
}
