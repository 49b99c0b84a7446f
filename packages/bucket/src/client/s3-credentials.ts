import { type BucketOptions, type Credentials, resolveOptions } from "../options.ts";
import { s3Failure } from "./s3-failure.ts";

/**
 * Where the credentials of an S3 bucket come from, for another program that is to use the same ones: those given, else
 * the AWS SDK's chain (environment, profile, web identity, container, instance). Each call answers ones that hold now.
 * Temporary ones are fetched anew, in the background of a call, in the last five minutes before they expire: so ask again
 * every minute or so.
 * @param url the bucket's, for errors
 * @throws BucketOptionError (CELLKIT_BUCKET_OPTION); the function that it answers: BucketAccessDeniedError
 *   (CELLKIT_BUCKET_ACCESS_DENIED) when there are none, BucketUnreachableError when whoever has them gives no answer
 */
export function s3Credentials(url: string, options: BucketOptions = {}): () => Promise<Credentials> {
  const { region, credentials } = resolveOptions(options, process.env);
  let client: Promise<import("@aws-sdk/client-s3").S3Client> | undefined;
  return async () => {
    client ??= import("@aws-sdk/client-s3").then(
      ({ S3Client }) => new S3Client({ region, ...(credentials === undefined ? {} : { credentials }) }),
    );
    const { config } = await client;
    try {
      const { accessKeyId, secretAccessKey, sessionToken } = await config.credentials();
      return { accessKeyId, secretAccessKey, sessionToken };
    } catch (error) {
      const failure = s3Failure(url, error);
      throw "error" in failure ? failure.error : error;
    }
  };
}
