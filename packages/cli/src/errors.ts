/** The base class of everything this package throws. Match on `code`. */
export abstract class CliError extends Error {
  abstract override readonly name: string;
  abstract readonly code: `CELLKIT_CLI_${string}`;
}

/** A local fleet was asked for something that it does not have. The message says what. */
export class LocalFleetError extends CliError {
  override readonly name = "LocalFleetError";
  readonly code = "CELLKIT_CLI_LOCAL_FLEET";
}

/** Half a key pair was given. */
export class CredentialsError extends CliError {
  override readonly name = "CredentialsError";
  readonly code = "CELLKIT_CLI_CREDENTIALS";

  constructor(options?: ErrorOptions) {
    super(
      "only half a key pair was given: set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither to have one made",
      options,
    );
  }
}
