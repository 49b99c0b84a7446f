// The nonces of the last minute, in typed arrays: 32 bytes and an index slot each, nothing for the garbage collector to
// walk. Entries lie in a ring in the order of arrival, so that expiry looks at the front only; a table with open
// addressing (linear probing, deletion by shifting back) finds them. When the clock goes back, that order is not the one
// of their times: a full memory is then looked through as a whole, once in a while.
//
// One rule goes beyond the protocol page: whatever is forgotten raises `floorMs`, and a request stamped at or below it
// is too old for good. In the ordinary course of time such a request is outside the clock window anyway; when a
// clock leaps ahead and returns, this keeps what was forgotten meanwhile from being played again.
//
// The table's hash is not secret. Only a holder of the fleet key can choose the nonces that get here, and it could do
// worse things.

const wordsPerNonce = 4;
const firstRingSize = 1_024;
/** Slots of the table for each place in the ring: at most half of them are taken. */
const slotsPerEntry = 2;
/** How many expired entries one check removes at most, so that no request pays for a burst of a minute ago. */
const expiriesPerCheck = 16;
/** A full memory is looked through as a whole at most this often in each retention: it costs some tens of milliseconds. */
const scansPerRetention = 12;

/** Remembers nonces for a time, up to a count. All times are milliseconds since the Unix epoch. */
export class ReplayCache {
  readonly #capacity: number;
  readonly #retentionMs: number;
  /** Place of the oldest entry in the ring. */
  #first = 0;
  #count = 0;
  #ringSize = firstRingSize;
  #words = new Uint32Array(firstRingSize * wordsPerNonce);
  #seenMs = new Float64Array(firstRingSize);
  #stampMs = new Float64Array(firstRingSize);
  /** Place in the ring plus one; 0 is a free slot. */
  #table = new Uint32Array(firstRingSize * slotsPerEntry);
  #floorMs = Number.NEGATIVE_INFINITY;
  /** When the last one came. */
  #newestMs = Number.NEGATIVE_INFINITY;
  /** Whether one lies behind another that came at a later time. */
  #isDisordered = false;
  #scannedMs = Number.NEGATIVE_INFINITY;
  /** The nonce in question, so that reading it allocates nothing. */
  readonly #probe = new Uint32Array(wordsPerNonce);

  /** @param capacity at most this many nonces */
  constructor(capacity: number, retentionMs: number) {
    this.#capacity = capacity;
    this.#retentionMs = retentionMs;
  }

  /** How many nonces are remembered. */
  get count(): number {
    return this.#count;
  }

  /** The latest stamp of a request that was forgotten: one stamped then or earlier is not to be accepted any more. */
  get floorMs(): number {
    return this.#floorMs;
  }

  /** What may happen with a nonce of 32 hex digits; `seen` before `full`, as the protocol orders its checks. */
  check(nonce: string, nowMs: number): "fresh" | "seen" | "full" {
    this.#expire(nowMs);
    this.#read(nonce);
    if (this.#table[this.#slotOf()] !== 0) return "seen";
    if (this.#count < this.#capacity) return "fresh";
    this.reclaim(nowMs);
    return this.#count < this.#capacity ? "fresh" : "full";
  }

  /** Remembers a nonce that {@link check} called fresh. */
  add(nonce: string, nowMs: number, stampMs: number): void {
    if (this.#count === this.#ringSize) this.#rebuild(this.#ringSize * 2);
    this.#read(nonce);
    this.#append(nowMs, stampMs);
  }

  #expire(nowMs: number): void {
    for (let removed = 0; removed < expiriesPerCheck && this.#count > 0; removed += 1) {
      const place = this.#first & (this.#ringSize - 1);
      if (nowMs - (this.#seenMs[place] ?? 0) <= this.#retentionMs) return;
      this.#floorMs = Math.max(this.#floorMs, this.#stampMs[place] ?? 0);
      this.#load(place);
      this.#free(this.#slotOf());
      this.#first = (this.#first + 1) & (this.#ringSize - 1);
      this.#count -= 1;
    }
  }

  /** Forgets all that is over, wherever a clock that went back has left it, unless that was done a moment ago. */
  reclaim(nowMs: number): void {
    if (!this.#isDisordered) return;
    if (Math.abs(nowMs - this.#scannedMs) < this.#retentionMs / scansPerRetention) return;
    this.#scannedMs = nowMs;
    this.#rebuild(this.#ringSize, (seenMs) => nowMs - seenMs <= this.#retentionMs);
  }

  #read(nonce: string): void {
    for (let i = 0; i < wordsPerNonce; i += 1) {
      this.#probe[i] = Number.parseInt(nonce.slice(i * 8, i * 8 + 8), 16);
    }
  }

  #load(place: number): void {
    for (let i = 0; i < wordsPerNonce; i += 1) this.#probe[i] = this.#words[place * wordsPerNonce + i] ?? 0;
  }

  /** Where the probed nonce would lie if its slot and all before it were free. */
  #home(): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.#probe;
    let hash = Math.imul(a ^ (b >>> 15), 0x85ebca6b) ^ Math.imul(b ^ (c >>> 13), 0xc2b2ae35);
    hash ^= Math.imul(c ^ (d >>> 16), 0x27d4eb2f) ^ Math.imul(d ^ (a >>> 14), 0x165667b1);
    return (hash ^ (hash >>> 15)) & (this.#table.length - 1);
  }

  /** The slot of the probed nonce, or the free one where it belongs. */
  #slotOf(): number {
    const mask = this.#table.length - 1;
    let slot = this.#home();
    for (;;) {
      const entry = this.#table[slot] ?? 0;
      if (entry === 0 || this.#isProbed(entry - 1)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isProbed(place: number): boolean {
    for (let i = 0; i < wordsPerNonce; i += 1) {
      if (this.#words[place * wordsPerNonce + i] !== this.#probe[i]) return false;
    }
    return true;
  }

  /** Frees a slot and moves back what had to step over it. */
  #free(slot: number): void {
    const mask = this.#table.length - 1;
    let hole = slot;
    for (let next = (hole + 1) & mask; ; next = (next + 1) & mask) {
      const entry = this.#table[next] ?? 0;
      if (entry === 0) break;
      this.#load(entry - 1);
      const distanceFromHome = (next - this.#home()) & mask;
      if (distanceFromHome >= ((next - hole) & mask)) {
        this.#table[hole] = entry;
        hole = next;
      }
    }
    this.#table[hole] = 0;
  }

  /** Copies the entries that are to be kept into a ring of this size; the others are forgotten. */
  #rebuild(size: number, keep: (seenMs: number) => boolean = () => true): void {
    const [first, count, mask] = [this.#first, this.#count, this.#ringSize - 1];
    const [words, seenMs, stampMs] = [this.#words, this.#seenMs, this.#stampMs];
    this.#words = new Uint32Array(size * wordsPerNonce);
    this.#seenMs = new Float64Array(size);
    this.#stampMs = new Float64Array(size);
    this.#table = new Uint32Array(size * slotsPerEntry);
    this.#first = 0;
    this.#count = 0;
    this.#ringSize = size;
    this.#isDisordered = false;
    this.#newestMs = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < count; i += 1) {
      const place = (first + i) & mask;
      const [seen = 0, stamp = 0] = [seenMs[place], stampMs[place]];
      if (!keep(seen)) {
        this.#floorMs = Math.max(this.#floorMs, stamp);
        continue;
      }
      this.#probe.set(words.subarray(place * wordsPerNonce, (place + 1) * wordsPerNonce));
      this.#append(seen, stamp);
    }
  }

  /** Puts the probed nonce behind the others. */
  #append(seenMs: number, stampMs: number): void {
    const place = (this.#first + this.#count) & (this.#ringSize - 1);
    this.#words.set(this.#probe, place * wordsPerNonce);
    this.#seenMs[place] = seenMs;
    this.#stampMs[place] = stampMs;
    this.#table[this.#slotOf()] = place + 1;
    this.#count += 1;
    if (seenMs < this.#newestMs) this.#isDisordered = true;
    this.#newestMs = seenMs;
  }
}
