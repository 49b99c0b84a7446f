export {
  type CertificateFiles,
  certificateDateProblem,
  certificateTlsOptions,
  readCertificate,
} from "./certificate.ts";
export { addCertificateMetrics } from "./certificate-metrics.ts";
export { CertificateWatch, type CertificateWatchOptions } from "./certificate-watch.ts";
export { type Address, addressOption } from "./core/address.ts";
export { type CertificateAge, type CertificatePair, certificateAge } from "./core/certificate-pair.ts";
export {
  type Command,
  type CommandDefinition,
  type CommandGroup,
  commandGroup,
  defineCommand,
  type ListedCommand,
  listedCommand,
  type ParsedCommand,
  type ParseIdentity,
  parseCommand,
} from "./core/command.ts";
export { type ExitCode, exitCodeMeanings, exitCodeOf, exitCodes } from "./core/exit-code.ts";
export { optionsTable, withOptionsTable } from "./core/help.ts";
export {
  type ConfigSchema,
  type Option,
  type OptionKind,
  type OptionMeta,
  optionsOf,
} from "./core/option.ts";
export { type OtherVariable, type Parsed, type ParseOptions, parseConfig } from "./core/parse-config.ts";
export { storeOptions } from "./core/store-options.ts";
export { DaemonProcess, type DaemonProcessOptions, type ProcessExit } from "./daemon-process.ts";
export {
  BodyTooLargeError,
  CertificateFileError,
  ConfigError,
  type ConfigProblem,
  DaemonError,
  DaemonProcessError,
  ListenError,
  MetricNameError,
  SchemaError,
  SecretFileError,
  StepTimeoutError,
  StopSequenceError,
} from "./errors.ts";
export type { HttpAnswer, HttpRequest, Route } from "./http-route.ts";
export { createHttpServer, type HttpServer, type HttpServerOptions } from "./http-server.ts";
export {
  type CreateLoggerOptions,
  createLogger,
  type LogFormat,
  type Logger,
  type LogLevel,
  logOptions,
  redactedFields,
} from "./logger.ts";
export {
  type Counter,
  type CreateMetricsOptions,
  createMetrics,
  type Gauge,
  type Histogram,
  type Metrics,
  type Registry,
} from "./metrics.ts";
export { packageVersion } from "./package-version.ts";
export { type CommandContext, type CommandProgram, runCommand } from "./run-command.ts";
export {
  type Daemon,
  type DaemonContext,
  type LogConfig,
  type RunningDaemon,
  runDaemon,
} from "./run-daemon.ts";
export { type ReadSecretFileOptions, readSecretFile } from "./secret-file.ts";
export {
  type Step,
  type StepOptions,
  type StepResult,
  type StopReport,
  StopSequence,
} from "./stop-sequence.ts";
