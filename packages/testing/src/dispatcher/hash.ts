import { createBLAKE3 } from "hash-wasm";

/** BLAKE3 of bytes, as the execution plane writes it. */
export type Identity = (bytes: Uint8Array | string) => `blake3:${string}`;

/** A function that hashes at once; to make one has to wait for WebAssembly. */
export async function createIdentity(): Promise<Identity> {
  const hasher = await createBLAKE3();
  return (bytes) => `blake3:${hasher.init().update(bytes).digest("hex")}`;
}
