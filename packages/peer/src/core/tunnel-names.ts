/** Path of every establishment. */
export const tunnelPath = "/peer/tunnel";
/** The protocol that an establishment upgrades to. */
export const tunnelUpgrade = "celld-tunnel";
/** Version of the tunnel, in its own header and in the signed one. */
export const tunnelVersion = 5;
export const tunnelVersionHeader = "x-cells-tunnel-version";
export const tunnelKindHeader = "x-cells-tunnel-kind";
/** With the value {@link staleOwnerMarker}: not the owner, nothing ran. Honoured with status 409 only. */
export const routeErrorHeader = "x-cells-route-error";
export const staleOwnerMarker = "stale-owner";
