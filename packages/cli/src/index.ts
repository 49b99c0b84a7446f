export {
  CallFailedError,
  CallInputError,
  CliError,
  IdFileError,
  KeyFileError,
  LedgerPlaceError,
  LocalFleetError,
  ProcessEndedError,
  ProcessStartError,
  ProjectError,
  RotationWaitError,
  StepCommandError,
  TokenRotationError,
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
