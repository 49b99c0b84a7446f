// Texts and limits of protocol 5 that stand outside the establishment.
import { tunnelVersion } from "./core/tunnel-names.ts";

/** Version of the peer protocol inside tunnels, as on the wire. */
export const tunnelVersionText = String(tunnelVersion);
/** Beginning of the path of every cancellation. */
export const abortPrefix = "/peer/abort/";
/** Most bytes of a forwarded fetch's or RPC's body (spec B8): the public limit and a mebibyte of room. */
export const maxCallBodyBytes = 1024 ** 3 + 1024 ** 2;
/** Most bytes of a control call's body (spec B8). */
export const maxControlBodyBytes = 64 * 1024;
/** The longest that a tunnel is idle. Owners drop one after 30 s; a call must not be written in that instant. */
export const maxIdleMs = 29_000;
