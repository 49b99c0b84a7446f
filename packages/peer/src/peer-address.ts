/** `HOST:PORT`, as records and flags write it. */

import type { PeerAddress } from "./connection.ts";
import { PeerOptionError } from "./errors.ts";

const form = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/@?#]+)):([1-9]\d{0,4})$/;
const maxPort = 65_535;

/** `HOST:PORT`, an IPv6 address in brackets; undefined when it is not that. */
export function readPeerAddress(text: string): PeerAddress | undefined {
  const [, ipv6, host, digits] = form.exec(text) ?? [];
  const port = Number(digits);
  const found = ipv6 ?? host;
  return found === undefined || port > maxPort ? undefined : { host: found, port };
}

/**
 * Same as {@link readPeerAddress}.
 * @throws PeerOptionError (CELLKIT_PEER_OPTION)
 */
export function parsePeerAddress(text: string): PeerAddress {
  const address = readPeerAddress(text);
  if (address === undefined)
    throw new PeerOptionError("address", `is ${JSON.stringify(text.slice(0, 100))}: must be HOST:PORT`);
  return address;
}
