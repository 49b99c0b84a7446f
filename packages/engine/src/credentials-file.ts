// The credentials that workerd has for the bucket. It reads them from a file, again whenever that is replaced, and knows
// neither profiles nor roles: whoever does writes the file.
import type { ConfigFile, DataDirectory } from "./data-directory.ts";
import type { ResolvedOptions } from "./engine-options.ts";
import { pause } from "./pause.ts";

/** The file as it is now, or undefined when workerd finds credentials in its environment. @throws what their source throws */
export async function credentialsFile({ credentials }: ResolvedOptions): Promise<ConfigFile | undefined> {
  if (credentials === undefined) return undefined;
  const { accessKeyId, secretAccessKey, sessionToken } =
    typeof credentials === "function" ? await credentials() : credentials;
  const lines = [`AWS_ACCESS_KEY_ID=${accessKeyId}`, `AWS_SECRET_ACCESS_KEY=${secretAccessKey}`];
  if (sessionToken !== undefined) lines.push(`AWS_SESSION_TOKEN=${sessionToken}`);
  return { name: "credentials", content: `${lines.join("\n")}\n` };
}

/** Keeps the file of a running workerd as the source of credentials has them, until the signal. @throws the signal's reason */
export async function renewCredentials(
  options: ResolvedOptions,
  directory: DataDirectory,
  signal: AbortSignal,
): Promise<void> {
  if (typeof options.credentials !== "function") return;
  for (;;) {
    await pause(options.credentialsPollMs, signal);
    try {
      const file = await credentialsFile(options);
      if (file !== undefined && (await directory.replaceConfig(file))) {
        options.log.info({}, "workerd was given renewed credentials");
      }
    } catch (error) {
      signal.throwIfAborted();
      // The ones that workerd has may hold for some minutes yet; the next try may find better ones.
      options.log.warn({ error }, "the credentials for workerd could not be renewed");
    }
  }
}
