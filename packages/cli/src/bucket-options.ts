// The options by which a command is told of a bucket; the same names and variables as a node's.
import { type Bucket, openBucket } from "@cellkit/bucket";
import { z } from "zod";

const section = "Bucket";

/** `--bucket`, `--endpoint`, `--region`, to be spread into a command's schema. Credentials come from the environment. */
export const bucketOptions = {
  bucket: z
    .string()
    .regex(
      /^(s3:\/\/[^/\s]+(\/\S*)?|file:\/\/\/\S+)$/,
      "must be s3://BUCKET, s3://BUCKET/PREFIX or file:///DIR",
    )
    .meta({
      description:
        "The fleet's bucket. Credentials of s3:// come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the AWS SDK's other sources.",
      env: "CELLD_BUCKET",
      placeholder: "URL",
      section,
      emptyIsUnset: true,
    }),
  endpoint: z
    .url({ protocol: /^https?$/, message: "must be an http:// or https:// URL" })
    .optional()
    .meta({
      description: "The S3 endpoint, for stores other than AWS.",
      env: "S3_ENDPOINT",
      placeholder: "URL",
      section,
      emptyIsUnset: true,
    }),
  region: z
    .string()
    .default("us-east-1")
    .meta({
      description: "The bucket's region.",
      env: ["AWS_REGION", "AWS_DEFAULT_REGION"],
      section,
      emptyIsUnset: true,
    }),
};

/** Opens the bucket that the options name. */
export function openBucketOf(config: {
  bucket: string;
  endpoint?: string | undefined;
  region: string;
}): Bucket {
  const { bucket, endpoint, region } = config;
  return openBucket(bucket, { region, ...(endpoint === undefined ? {} : { endpoint }) });
}
