// A Wrangler project as a command sees it.
import { type Bundle, bundleProject, DeploymentError } from "@cellkit/deployment";
import { ProjectError } from "./errors.ts";

/** What is wrong with the configuration, not with the Worker's code. */
const configurationCodes = ["CELLKIT_DEPLOYMENT_NO_PROJECT", "CELLKIT_DEPLOYMENT_CONFIG"];

/**
 * Bundles the project of a directory.
 * @throws ProjectError (`CELLKIT_CLI_PROJECT`) when there is none, or its configuration does not fit; BundleError
 * (`CELLKIT_DEPLOYMENT_BUNDLE`) when the Worker does not compile; the signal's reason
 */
export async function readProject(directory: string, signal?: AbortSignal): Promise<Bundle> {
  try {
    return await bundleProject(directory, { signal });
  } catch (error) {
    if (error instanceof DeploymentError && configurationCodes.includes(error.code)) {
      throw new ProjectError(error.message, { cause: error });
    }
    throw error;
  }
}
