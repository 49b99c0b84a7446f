export { cellkitCommand } from "./bucket-process.ts";
export {
  CliError,
  LocalFleetError,
  ProcessEndedError,
  ProcessStartError,
  ProjectError,
  WatchError,
} from "./errors.ts";
export {
  type LocalFleet,
  type LocalFleetOptions,
  type LocalNode,
  type RestartOptions,
  startLocalFleet,
} from "./local-fleet.ts";
