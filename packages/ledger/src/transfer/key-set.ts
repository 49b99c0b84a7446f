/** Keys, 32 bytes each: a set of texts would take many times as much for a million of them. */

const KEY_BYTES = 32;

/** Half of the slots stay free, so that a search ends soon. */
const MAX_LOAD = 0.5;

/** A set of record keys. */
export class KeySet {
  #count = 0;
  #keys = Buffer.alloc(KEY_BYTES * 1_024);
  /** The number of a key, from 1; 0 is a free slot. As many as a power of two. */
  #slots = new Uint32Array(2_048);

  get size(): number {
    return this.#count;
  }

  /** @param key 64 lowercase hex digits. Answers false if it was there already. */
  add(key: string): boolean {
    if (this.#count + 1 > this.#slots.length * MAX_LOAD) this.#grow();
    const at = this.#count * KEY_BYTES;
    this.#keys.write(key, at, "hex");
    const slot = this.#slotOf(at);
    if (this.#slots[slot] !== 0) return false;
    this.#count += 1;
    this.#slots[slot] = this.#count;
    return true;
  }

  /** Where a key is, or would be. Keys are hashes already, and whoever makes up a file slows down only its own import. */
  #slotOf(at: number): number {
    const mask = this.#slots.length - 1;
    // All of it is mixed in: made-up keys may differ in their last bytes only.
    let hash = 0;
    for (let word = 0; word < KEY_BYTES; word += 4)
      hash = Math.imul(hash ^ this.#keys.readUInt32LE(at + word), 0x9e3779b1);
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (;;) {
      const number = this.#slots[slot] ?? 0;
      const other = (number - 1) * KEY_BYTES;
      if (number === 0 || this.#keys.compare(this.#keys, at, at + KEY_BYTES, other, other + KEY_BYTES) === 0)
        return slot;
      slot = (slot + 1) & mask;
    }
  }

  #grow(): void {
    const keys = Buffer.alloc(this.#keys.length * 2);
    this.#keys.copy(keys);
    this.#keys = keys;
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (let number = 1; number <= this.#count; number++)
      this.#slots[this.#slotOf((number - 1) * KEY_BYTES)] = number;
  }
}
