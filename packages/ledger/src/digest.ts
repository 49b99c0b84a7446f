/** BLAKE3-256: the names of records, and what they say of bodies. */
import { createBLAKE3, type IHasher } from "hash-wasm";

/** Hashes ids and bodies; made once, since its setup is asynchronous. */
export interface Digest {
  /** The key of an id's record: lowercase hex BLAKE3-256 of its UTF-8 bytes. About 1 µs. */
  key(id: string): string;
  /** What a record says of a body: `blake3:` and the lowercase hex BLAKE3-256 of its bytes. 64 KiB take about 0.2 ms. */
  bodyHash(body: Uint8Array | string): string;
}

let hasher: Promise<IHasher> | undefined;

/** The one hasher of this process; it is synchronous once it is there, so that sharing it is safe. */
export async function loadDigest(): Promise<Digest> {
  hasher ??= createBLAKE3();
  const blake3 = await hasher;
  const hash = (data: Uint8Array | string) => blake3.init().update(data).digest("hex");
  return { key: hash, bodyHash: (body) => `blake3:${hash(body)}` };
}
