/** That a path still leads to the folder that was opened: in any other one, no object would be found, and each could be created again. */
import { type BigIntStats, closeSync, fstatSync, openSync, statSync } from "node:fs";
import { BucketDiskError } from "../errors.ts";
import { diskFailure } from "./disk-failure.ts";

/** One folder, held open, so that no other one gets its number. */
export class Place {
  readonly #bucket: string;
  readonly #folder: string;
  readonly #fd: number;
  readonly #identity: BigIntStats;
  #open = true;

  /**
   * @param bucket the directory that errors name
   * @throws the system's error
   */
  constructor(bucket: string, folder: string) {
    this.#bucket = bucket;
    this.#folder = folder;
    this.#fd = openSync(folder, "r");
    this.#identity = fstatSync(this.#fd, { bigint: true });
  }

  /** About 2 µs. @throws BucketDiskError (CELLKIT_BUCKET_DISK) when the folder was removed, moved or replaced */
  check(): void {
    let found: BigIntStats | undefined;
    try {
      found = statSync(this.#folder, { bigint: true, throwIfNoEntry: false });
    } catch (error) {
      throw diskFailure(this.#bucket, error);
    }
    if (found?.ino !== this.#identity.ino || found.dev !== this.#identity.dev)
      throw new BucketDiskError(
        this.#bucket,
        `${this.#folder} was removed or replaced since it was opened: put it back, and open it again`,
      );
  }

  /** Idempotent. */
  close(): void {
    if (this.#open) closeSync(this.#fd);
    this.#open = false;
  }
}
