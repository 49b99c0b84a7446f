import { hostname } from "node:os";

/** A name for this process among all machines, as an identity in a fleet may be: host name and process id. */
export function processName(): string {
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9_.-]/g, "-")
    .slice(0, 90);
  return `${host}-${process.pid}`;
}
