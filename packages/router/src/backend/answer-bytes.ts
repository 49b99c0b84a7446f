// The bytes of an answer in one piece, as they come. Pieces are copied to where they stay, so that a large answer is not there twice
// when its end is reached, in pieces and joined.

/** Collects one answer. */
export class AnswerBytes {
  #room: Buffer = Buffer.alloc(0);
  #length = 0;

  /** How many came. */
  get length(): number {
    return this.#length;
  }

  /** What came, in one piece. Later pieces leave it as it is. */
  get whole(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  /**
   * Adds a piece, which belongs to this answer from now on.
   * @param announced how long the whole answer says that it is: a hint for the room that is made, and none that must be true
   */
  add(piece: Buffer, announced: number | undefined): void {
    const needed = this.#length + piece.length;
    if (this.#length === 0) {
      // Most answers are one piece.
      this.#room = piece;
    } else {
      if (needed > this.#room.length) this.#widen(roomBytes(needed, announced));
      piece.copy(this.#room, this.#length);
    }
    this.#length = needed;
  }

  #widen(bytes: number): void {
    // Not filled, so that the system gives memory only for what is written.
    const room = Buffer.allocUnsafeSlow(bytes);
    this.#room.copy(room, 0, 0, this.#length);
    this.#room = room;
  }
}

/** In steps, so that a dispatcher which only announces much takes no room by that. */
function roomBytes(needed: number, announced = 0): number {
  return announced >= needed ? Math.min(announced, 4 * needed) : 2 * needed;
}
