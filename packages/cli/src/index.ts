export { CliError, CredentialsError, LocalFleetError } from "./errors.ts";
export {
  cellkitCommand,
  type LocalFleet,
  type LocalFleetOptions,
  type LocalNode,
  startLocalFleet,
} from "./local-fleet.ts";
