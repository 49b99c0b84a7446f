// A tunnel without records in which a test writes what it likes.
import { dialTunnel } from "../../src/dial-tunnel.ts";
import { testKey } from "./records.ts";

/** Writes the bytes into a new tunnel and answers all that comes back until it ends. */
export async function establishedTunnel(
  address: { host: string; port: number },
  bytes: string,
): Promise<string> {
  const tunnel = await dialTunnel({
    address,
    kind: "do",
    key: testKey,
    self: "caller",
    destination: "owner",
    records: "off",
  });
  const pieces: Buffer[] = [];
  tunnel.write(bytes);
  for await (const piece of tunnel) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("latin1");
}
