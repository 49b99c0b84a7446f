/** Size of one read; libuv's own. */
const readBytes = 64 * 1024;

/**
 * One buffer that all upstream links of a server read into, one read after the other; what was read is copied out at
 * once. Node otherwise allocates 64 KiB for each read, however small, and garbage collection frees them: for small
 * answers that costs more than all tracking does.
 */
export class ReadBuffer {
  readonly bytes = Buffer.allocUnsafeSlow(readBytes);

  /** A copy of the first bytes, which stays as it is when the next read comes. */
  take(lengthBytes: number): Buffer {
    const copy = Buffer.allocUnsafe(lengthBytes);
    this.bytes.copy(copy, 0, 0, lengthBytes);
    return copy;
  }
}
