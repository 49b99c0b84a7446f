export { type EdgeConfig, edgeOptions } from "./config.ts";
export { CertificateError, CheckFailedError, EdgeError } from "./errors.ts";
export { startEdge } from "./wiring.ts";
