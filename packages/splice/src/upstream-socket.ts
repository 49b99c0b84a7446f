import { Socket } from "node:net";

type WriteDone = (error?: Error | null) => void;

/**
 * A socket whose failed write does not end its reading. A peer that closed its side may have said why just before, and
 * that still waits to be read; Node's own socket throws it away with the first write that fails. Here the bytes that
 * nobody takes any more are dropped, and reading goes on to the peer's end, which tells the rest.
 */
export class UpstreamSocket extends Socket {
  /** The peer no longer takes bytes: its end, whenever it comes, is no end in order. */
  refusedBytes = false;

  override _write(chunk: unknown, encoding: BufferEncoding, done: WriteDone): void {
    super._write(chunk, encoding, this.#forgiving(done));
  }

  override _writev(chunks: readonly { chunk: unknown; encoding: BufferEncoding }[], done: WriteDone): void {
    super._writev?.([...chunks], this.#forgiving(done));
  }

  #forgiving(done: WriteDone): WriteDone {
    return (error) => {
      if (!isRefusal(error)) {
        done(error);
        return;
      }
      this.refusedBytes = true;
      done();
    };
  }
}

function isRefusal(error: Error | null | undefined): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EPIPE" || code === "ECONNRESET";
}
