// What one workerd is given: its config and credentials as files in the data directory, and its environment.
import { join } from "node:path";
import { renderWorkerdConfig } from "./core/workerd-config.ts";
import { credentialsFile } from "./credentials-file.ts";
import type { ResolvedOptions } from "./engine-options.ts";
import type { LaunchInput } from "./launch.ts";
import type { SocketDirectory } from "./socket-directory.ts";

const configName = "config.capnp";
const passedVariable =
  /^(PATH|HOME|TMPDIR|TZ|LANG|LC_.*|SSL_CERT_.*|AWS_.*|GOOGLE_.*|GCE_.*|KUBERNETES_SERVICE_HOST|STORAGE_EMULATOR_HOST)$/;
/** Credentials in the environment, which may be others than those in the file. */
const credentialVariable = /^AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|CREDENTIALS_FILE)$/;

/** Writes what workerd reads, and answers the path of the config. @throws DataDirectoryError, what credentials throw */
export async function writeConfig(
  { options, advertise, directory, plan, runtime, clusterKey, vars, secrets }: LaunchInput,
  { publicSocket, controlSocket, peerSocket, peerRpcSocket }: SocketDirectory,
): Promise<string> {
  const credentials = await credentialsFile(options);
  const { config, files } = renderWorkerdConfig(
    plan,
    {
      publicSocket,
      controlSocket,
      peerSocket,
      peerRpcSocket,
      node: options.node,
      cfBlobHeader: options.cfBlobHeader,
      storageDirectory: directory.cells,
      bucketUrl: options.bucketUrl,
      bucketOptions: bucketOptions(options, credentials && join(directory.config, credentials.name)),
      advertise,
      clusterKey,
      stopTimeoutMs: options.stopTimeoutMs,
      unsafeTimeDivisor: options.unsafeTimeDivisor,
      vars,
      secrets,
    },
    runtime,
  );
  await directory.writeConfig([
    ...files.map(({ name, bytes }) => ({ name, content: bytes })),
    ...(credentials === undefined ? [] : [credentials]),
    { name: configName, content: config },
  ]);
  return join(directory.config, configName);
}

function bucketOptions(
  { bucketUrl, region, endpoint }: ResolvedOptions,
  credentials: string | undefined,
): string[] {
  // workerd takes no settings for Google's store.
  if (bucketUrl.startsWith("gs://")) return [];
  return [
    `aws_region=${region}`,
    ...(endpoint === undefined ? [] : [`aws_endpoint=${endpoint}`]),
    ...(credentials === undefined ? [] : [`aws_credentials_file=${credentials}`]),
  ];
}

/** Only what workerd itself reads, and what its config does not say; nothing of celld's own configuration. */
export function childEnvironment({ credentials, endpoint }: ResolvedOptions): NodeJS.ProcessEnv {
  const passed = (name: string) =>
    passedVariable.test(name) && (credentials === undefined || !credentialVariable.test(name));
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => passed(name)));
  // workerd refuses an endpoint without TLS otherwise; whoever configured http:// has decided that.
  if (endpoint?.startsWith("http://") === true) environment["AWS_ALLOW_HTTP"] = "true";
  return environment;
}
