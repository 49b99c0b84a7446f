import { expect, it } from "vitest";
import { s3Failure } from "../../src/client/s3-failure.ts";

/** What the AWS SDK throws. */
const thrown = (name: string, httpStatusCode?: number) =>
  Object.assign(new TypeError(name), {
    name,
    ...(httpStatusCode === undefined ? { code: name } : { $metadata: { httpStatusCode } }),
  });

it.each([
  ["InvalidAccessKeyId", thrown("InvalidAccessKeyId", 403)],
  ["NoSuchBucket", thrown("NoSuchBucket", 404)],
  ["InternalError", thrown("InternalError", 500)],
  ["ENOTFOUND", thrown("ENOTFOUND")],
])("%s is told with the AWS SDK as the one that chose the endpoint, where none was given", (_, error) => {
  const message = (endpoint?: string) => {
    const failure = s3Failure("s3://cells", error, endpoint);
    return "error" in failure ? failure.error.message : failure.kind;
  };
  expect(message()).toMatch(/no endpoint was given, so the AWS SDK chose it/);
  expect(message("http://127.0.0.1:9000")).not.toMatch(/AWS/);
});
