// What one workerd is given: its config and credentials as files in the data directory, and its environment.
import { join } from "node:path";
import { renderWorkerdConfig } from "./core/workerd-config.ts";
import type { ConfigFile } from "./data-directory.ts";
import type { ResolvedOptions } from "./engine-options.ts";
import type { LaunchInput } from "./launch.ts";

const configName = "config.capnp";
const passedVariable =
  /^(PATH|HOME|TMPDIR|TZ|LANG|LC_.*|SSL_CERT_.*|AWS_.*|GOOGLE_.*|GCE_.*|KUBERNETES_SERVICE_HOST|STORAGE_EMULATOR_HOST)$/;

/** Writes what workerd reads, and answers the path of the config. @throws DataDirectoryError */
export async function writeConfig(
  { options, directory, plan, runtime, clusterKey, vars, secrets }: LaunchInput,
  sockets: { publicSocket: string; controlSocket: string },
): Promise<string> {
  const credentials = credentialsFile(options);
  const { config, files } = renderWorkerdConfig(
    plan,
    {
      ...sockets,
      cfBlobHeader: options.cfBlobHeader,
      storageDirectory: directory.cells,
      bucketUrl: options.bucketUrl,
      bucketOptions: bucketOptions(options, credentials && join(directory.config, credentials.name)),
      advertise: options.advertise,
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

/** A file that workerd reads again whenever it is replaced. */
function credentialsFile({ credentials }: ResolvedOptions): ConfigFile | undefined {
  if (credentials === undefined) return undefined;
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const lines = [`AWS_ACCESS_KEY_ID=${accessKeyId}`, `AWS_SECRET_ACCESS_KEY=${secretAccessKey}`];
  if (sessionToken !== undefined) lines.push(`AWS_SESSION_TOKEN=${sessionToken}`);
  return { name: "credentials", content: `${lines.join("\n")}\n` };
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

/** Only what workerd itself reads; nothing of celld's own configuration. */
export function childEnvironment({ endpoint }: ResolvedOptions): NodeJS.ProcessEnv {
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => passedVariable.test(name)),
  );
  // workerd refuses an endpoint without TLS otherwise; whoever configured http:// has decided that.
  if (endpoint?.startsWith("http://") === true) environment["AWS_ALLOW_HTTP"] = "true";
  return environment;
}
