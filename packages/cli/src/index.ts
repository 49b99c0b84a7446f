export {
  CallFailedError,
  CallInputError,
  CliError,
  KeyFileError,
  LedgerPlaceError,
  LocalFleetError,
  ProcessEndedError,
  ProcessStartError,
  ProjectError,
  RotationWaitError,
  WatchError,
} from "./errors.ts";
export {
  type LocalFleet,
  type LocalFleetOptions,
  type LocalNode,
  type RestartOptions,
  startLocalFleet,
} from "./local-fleet.ts";
export { cellkitCommand } from "./sibling-process.ts";
