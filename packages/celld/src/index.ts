export { type CelldConfig, celldOptions } from "./config.ts";
export { CelldError, DrainTimeoutError, FencedError } from "./errors.ts";
export { celldCommand, NodeProcess, type NodeProcessOptions } from "./node-process.ts";
export { type OpenRelayOptions, openRelay } from "./open-relay.ts";
export { processName } from "./process-name.ts";
export { type NodeStateAnswer, nodeState } from "./state.ts";
export { startNode } from "./wiring.ts";
