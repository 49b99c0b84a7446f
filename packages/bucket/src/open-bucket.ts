import type { Bucket } from "./bucket.ts";
import { FileBucket } from "./client/file-bucket.ts";
import { S3Bucket } from "./client/s3-bucket.ts";
import { type BucketOptions, parseBucketUrl, resolveOptions } from "./options.ts";

/**
 * Opens a bucket. Nothing is sent or touched before the first call.
 * @param url `s3://bucket/prefix`, or `file:///directory` (made if absent; the embedded server may serve it meanwhile)
 * @throws BucketUrlError (CELLKIT_BUCKET_URL), BucketOptionError (CELLKIT_BUCKET_OPTION)
 */
export function openBucket(url: string, options: BucketOptions = {}): Bucket {
  const location = parseBucketUrl(url);
  const resolved = resolveOptions(options, process.env);
  return location.kind === "s3"
    ? new S3Bucket(url, location, resolved)
    : new FileBucket(url, location.directory, resolved);
}
