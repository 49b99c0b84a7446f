// The two integer types of the wire.
import { z } from "zod";

const maxU32 = 2 ** 32 - 1;
const maxU64 = 2n ** 64n - 1n;

/** An unsigned 64-bit integer: written as number or bigint, always read as bigint, so that no digit is lost. */
export const u64 = z
  .union([z.bigint(), z.int()], "is no whole number")
  .transform((value) => BigInt(value))
  .pipe(z.bigint().min(0n, "is less than 0").max(maxU64, `is more than ${maxU64}`));

/** An unsigned 32-bit integer. */
export const u32 = z.int().min(0).max(maxU32);
