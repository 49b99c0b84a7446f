export {
  CallFailedError,
  CallInputError,
  CliError,
  HookError,
  IdFileError,
  ImportFileError,
  KeyFileError,
  LedgerAbsentError,
  LedgerPlaceError,
  LocalFleetError,
  ProcessEndedError,
  ProcessStartError,
  ProjectError,
  QualificationInputError,
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
