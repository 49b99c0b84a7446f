/**
 * Everything that this package throws. Match on `code`: two copies of a package break `instanceof`.
 * Messages carry names from the project and keys of the bucket, never the content of modules or of `vars`.
 */

/** The base of all errors of `@cellkit/deployment`. */
export abstract class DeploymentError extends Error {
  /** Stable, for programs. */
  abstract readonly code: string;
}

/** No Wrangler configuration that can be read lies in the directory, or more than one. The message says what to do. */
export class ProjectNotFoundError extends DeploymentError {
  override readonly name = "ProjectNotFoundError";
  readonly code = "CELLKIT_DEPLOYMENT_NO_PROJECT";
}

/** A list of problems as a message: one on the same line, several on a line each. */
function listed(summary: string, problems: readonly string[]): string {
  const [only] = problems;
  if (problems.length === 1) return `${summary}: ${only}`;
  return `${summary}, ${problems.length} problems:${problems.map((problem) => `\n  ${problem}`).join("")}`;
}

/** The Wrangler configuration holds something that is wrong or not supported. All problems are listed at once. */
export class WranglerConfigError extends DeploymentError {
  override readonly name = "WranglerConfigError";
  readonly code = "CELLKIT_DEPLOYMENT_CONFIG";
  /** One sentence a problem, each with the key that it is about. */
  readonly problems: readonly string[];

  constructor(file: string, problems: readonly string[], options?: ErrorOptions) {
    super(listed(file, problems), options);
    this.problems = problems;
  }
}

/** The Worker cannot be made into modules: it does not compile, misses an export, or exceeds a limit. */
export class BundleError extends DeploymentError {
  override readonly name = "BundleError";
  readonly code = "CELLKIT_DEPLOYMENT_BUNDLE";
  /** One sentence a problem, with file, line and column where there are any. */
  readonly problems: readonly string[];

  constructor(scriptName: string, problems: readonly string[], options?: ErrorOptions) {
    super(listed(`the Worker ${scriptName} cannot be bundled`, problems), options);
    this.problems = problems;
  }
}

/** Somebody else deployed while this deployment was being published. What they deployed stands. */
export class DeployConflictError extends DeploymentError {
  override readonly name = "DeployConflictError";
  readonly code = "CELLKIT_DEPLOYMENT_CONFLICT";
  /** The pointer that was moved by somebody else. */
  readonly key: string;

  constructor(key: string, found: string, options?: ErrorOptions) {
    super(
      `another deployment was published at the same time: ${key} now says ${found}; ` +
        "look at what was deployed, then deploy again",
      options,
    );
    this.key = key;
  }
}

/** The fleet runs another application, and `replaceScript` was not given. */
export class OtherScriptError extends DeploymentError {
  override readonly name = "OtherScriptError";
  readonly code = "CELLKIT_DEPLOYMENT_OTHER_SCRIPT";
  /** The script that the fleet runs. */
  readonly current: string;

  constructor(current: string, wanted: string, options?: ErrorOptions) {
    super(
      `this fleet runs the script ${current}, and a fleet runs one application: under the name ${wanted} all cells get ` +
        "other ids, so the data of the present cells would not follow (it stays in the bucket). " +
        `Keep the name ${current}, use another bucket or prefix, or deploy with replaceScript (--replace-script)`,
      options,
    );
    this.current = current;
  }
}

/** An object of a deployment is missing, malformed, too large or not what its manifest says. */
export class InvalidDeploymentError extends DeploymentError {
  override readonly name = "InvalidDeploymentError";
  readonly code = "CELLKIT_DEPLOYMENT_INVALID";
  /** Key of the object in the bucket. */
  readonly key: string;

  constructor(key: string, problem: string, options?: ErrorOptions) {
    super(`${key}: ${problem}; deploy the application again`, options);
    this.key = key;
  }
}

/** The deployment asks for something that this version of cellkit does not have. It may be well for another version. */
export class UnsupportedDeploymentError extends DeploymentError {
  override readonly name = "UnsupportedDeploymentError";
  readonly code = "CELLKIT_DEPLOYMENT_UNSUPPORTED";
  /** Key of the object in the bucket. */
  readonly key: string;
  /** What is not supported, one phrase each. */
  readonly unsupported: readonly string[];

  constructor(key: string, unsupported: readonly string[], options?: ErrorOptions) {
    super(
      `${key} needs what this version of cellkit does not support: ${unsupported.join(", ")}; ` +
        "run nodes of the version that it was deployed with, or deploy it again with this one",
      options,
    );
    this.key = key;
    this.unsupported = unsupported;
  }
}
