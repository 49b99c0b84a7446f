// The options by which a command is told of a bucket; the same names and variables as a node's.
import { storeOptions } from "@cellkit/daemon";
import { z } from "zod";

const section = "Bucket";

/** A bare name is an S3 bucket's, as nodes take it. What a name or a prefix may be is the same as in `openBucket`. */
const bucketUrl = z.string().transform((text, context): string => {
  const url = text.includes(":") ? text : `s3://${text}`;
  if (/^file:\/\/\/\S/.test(url) && URL.canParse(url)) return url;
  if (/^s3:\/\/[a-z0-9][a-z0-9.-]{0,62}(\/(?!\.{1,2}(\/|$))[^\s/?#]+)*\/?$/.test(url)) return url;
  const message = /^(gs|az):/.test(url)
    ? "fleets keep their cells on S3 stores only: give s3://BUCKET and, for a store other than AWS, --endpoint"
    : "must be s3://BUCKET, s3://BUCKET/PREFIX or file:///DIRECTORY";
  context.addIssue({ code: "custom", message });
  return z.NEVER;
});

/** `--bucket`, `--endpoint`, `--region`, to be spread into a command's schema. Credentials come from the environment. */
export const bucketOptions = {
  bucket: bucketUrl.meta({
    description:
      "The fleet's bucket. Credentials of s3:// come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the AWS SDK's other sources.",
    env: "CELLD_BUCKET",
    placeholder: "URL",
    section,
    emptyIsUnset: true,
  }),
  ...storeOptions(section),
};
