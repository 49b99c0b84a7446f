/** How a program is told of an S3 store, the same for all of them. Which bucket it takes is for each to say. */
import { z } from "zod";

/**
 * `--endpoint` and `--region` with the variables `S3_ENDPOINT`, `AWS_REGION`, `AWS_DEFAULT_REGION`, to be spread into a
 * program's schema.
 * @param section the heading in `--help`
 */
export function storeOptions(section: string) {
  return {
    endpoint: z
      .url({ protocol: /^https?$/, message: "must be an http:// or https:// URL" })
      .optional()
      .meta({
        description:
          "The S3 endpoint, for stores other than AWS. With it the bucket's name goes into the path.",
        env: "S3_ENDPOINT",
        placeholder: "URL",
        section,
        emptyIsUnset: true,
      }),
    region: z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/, "must be a region name, for example eu-central-1")
      .default("us-east-1")
      .meta({
        description: "The bucket's region.",
        env: ["AWS_REGION", "AWS_DEFAULT_REGION"],
        section,
        emptyIsUnset: true,
      }),
  };
}
