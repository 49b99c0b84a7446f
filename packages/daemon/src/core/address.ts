/** `HOST:PORT` as an option of a program. */
import { z } from "zod";

/** A host and a port, as a flag gives them. */
export interface Address {
  host: string;
  port: number;
}

const pattern = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/;

/**
 * The schema of `HOST:PORT` or `[IPv6]:PORT`, ports 0 to 65535, to be given its default and `.meta()`.
 * @param check answers what is wrong with an address that can be read, or undefined
 */
export function addressOption(check: (value: Address) => string | undefined = () => undefined) {
  return z.string().transform((text, context): Address => {
    const match = pattern.exec(text);
    const port = Number(match?.[3]);
    const value = { host: match?.[1] ?? match?.[2] ?? "", port };
    const problem =
      match === null || port > 65_535 ? "must be HOST:PORT, an IPv6 address in brackets" : check(value);
    if (problem === undefined) return value;
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  });
}
