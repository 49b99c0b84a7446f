/**
 * The folders of a bucket directory:
 * `cellkit-bucket.json` (the format), `objects/` (see core/object-key.ts), `staging/` (unfinished writes of each open
 * store), `uploads/` (multipart uploads), `locks/` (lock files, never removed).
 */
import { open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BucketFormatError } from "../errors.ts";
import { errnoOf } from "./disk-failure.ts";
import { makeDirectory } from "./make-directory.ts";

/** The longest path of a key is 3,100 bytes, and Linux takes 4,095 in one path. */
const DIRECTORY_LIMIT_BYTES = 900;
const MARKER = "cellkit-bucket.json";
const FORMAT = "cellkit-bucket-1";
/** What may lie in a directory that is to become a bucket. */
const IGNORED = new Set([MARKER, "lost+found", ".DS_Store"]);

/** Absolute paths of one bucket directory. */
export interface Layout {
  root: string;
  objects: string;
  staging: string;
  uploads: string;
  locks: string;
}

/**
 * Makes the directory a bucket, or checks that it is one.
 * @throws BucketFormatError (CELLKIT_BUCKET_FORMAT) when it holds anything else
 */
export async function prepareLayout(root: string): Promise<Layout> {
  if (Buffer.byteLength(root) > DIRECTORY_LIMIT_BYTES) {
    throw new BucketFormatError(root, `has a path of more than ${DIRECTORY_LIMIT_BYTES} bytes`);
  }
  await makeDirectory(root);
  const marker = join(root, MARKER);
  if (!(await hasMarker(root, marker))) {
    const foreign = (await readdir(root)).find((name) => !IGNORED.has(name));
    if (foreign !== undefined && !(await hasMarker(root, marker))) {
      throw new BucketFormatError(root, `is no cellkit bucket and holds ${JSON.stringify(foreign)}`);
    }
    const handle = await open(marker, "w", 0o644);
    try {
      await handle.writeFile(`${JSON.stringify({ format: FORMAT })}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
  const layout: Layout = {
    root,
    objects: join(root, "objects"),
    staging: join(root, "staging"),
    uploads: join(root, "uploads"),
    locks: join(root, "locks"),
  };
  for (const folder of [layout.objects, layout.staging, layout.uploads, layout.locks]) {
    await makeDirectory(folder);
  }
  const handle = await open(root, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  return layout;
}

async function hasMarker(root: string, marker: string): Promise<boolean> {
  let text: string;
  try {
    text = await readFile(marker, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
  // Empty: the process that made it died, or is writing it at this moment; all write the same.
  if (text === "") return false;
  let format: unknown;
  try {
    format = z.object({ format: z.string() }).parse(JSON.parse(text)).format;
  } catch (error) {
    throw new BucketFormatError(root, `has a ${MARKER} that cannot be read`, { cause: error });
  }
  if (format !== FORMAT) {
    throw new BucketFormatError(
      root,
      `has the format ${JSON.stringify(format)}; this version knows ${FORMAT}`,
    );
  }
  return true;
}
