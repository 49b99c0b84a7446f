/** `HOST:PORT`, as records and flags write it. */

import type { PeerAddress } from "./connection.ts";
import { PeerOptionError } from "./errors.ts";

/**
 * Reads `HOST:PORT`, an IPv6 address in brackets.
 * @throws PeerOptionError (CELLKIT_PEER_OPTION)
 */
export function parsePeerAddress(text: string): PeerAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/@?#]+)):([1-9]\d{0,4})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535)
    throw new PeerOptionError("address", `is ${JSON.stringify(text.slice(0, 100))}: must be HOST:PORT`);
  return { host: match[1] ?? match[2] ?? "", port };
}
