/** A key pair kept in a file that only its owner may read. */
import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { CredentialsFileError } from "../errors.ts";
import { errnoOf } from "../store/disk-failure.ts";
import { makeDirectory } from "../store/make-directory.ts";

const FILE_LIMIT_BYTES = 4096;
const schema = z.object({ accessKeyId: z.string().min(1), secretAccessKey: z.string().min(16) });

/** A key pair, and whether this call made it. */
export interface LoadedCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  created: boolean;
}

/**
 * Reads `{"accessKeyId","secretAccessKey"}` from a file, or makes a random pair and writes it there with mode 0600.
 * @throws CredentialsFileError (CELLKIT_BUCKET_CREDENTIALS_FILE) when others may read it, or it cannot be used
 */
export async function loadOrCreateCredentials(file: string): Promise<LoadedCredentials> {
  return (await load(file)) ?? (await create(file)) ?? (await loadExisting(file));
}

async function loadExisting(file: string): Promise<LoadedCredentials> {
  const loaded = await load(file);
  if (loaded === undefined) throw new CredentialsFileError(file, "disappeared while it was read");
  return loaded;
}

async function load(file: string): Promise<LoadedCredentials | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, "r");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw new CredentialsFileError(file, `cannot be read (${errnoOf(error) ?? "?"})`, { cause: error });
  }
  try {
    return { ...(await readPair(file, handle)), created: false };
  } catch (error) {
    if (error instanceof CredentialsFileError) throw error;
    throw new CredentialsFileError(file, `cannot be read (${errnoOf(error) ?? "?"})`, { cause: error });
  } finally {
    await handle.close();
  }
}

async function readPair(file: string, handle: FileHandle): Promise<z.infer<typeof schema>> {
  const { mode, size } = await handle.stat();
  if ((mode & 0o077) !== 0) {
    throw new CredentialsFileError(
      file,
      `may be read by others (mode ${(mode & 0o777).toString(8)}; set it to 600)`,
    );
  }
  if (size > FILE_LIMIT_BYTES)
    throw new CredentialsFileError(file, `is larger than ${FILE_LIMIT_BYTES} bytes`);
  const text = await handle.readFile("utf8");
  const parsed = schema.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new CredentialsFileError(file, "is not JSON with accessKeyId and secretAccessKey");
  }
  return parsed.data;
}

/** Answers undefined when another process made the file first. */
async function create(file: string): Promise<LoadedCredentials | undefined> {
  const pair = {
    accessKeyId: `CK${randomBytes(9).toString("hex").toUpperCase()}`,
    secretAccessKey: randomBytes(30).toString("base64url"),
  };
  // Written aside and linked, so that a reader never sees half of it.
  const aside = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await makeDirectory(dirname(file));
    await writeFile(aside, `${JSON.stringify(pair, undefined, 2)}\n`, {
      mode: 0o600,
      flag: "wx",
      flush: true,
    });
    await link(aside, file);
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return undefined;
    throw new CredentialsFileError(file, `cannot be written (${errnoOf(error) ?? "?"})`, { cause: error });
  } finally {
    await rm(aside, { force: true });
  }
  return { ...pair, created: true };
}

/** The content is a secret: nothing of it may reach an error. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
