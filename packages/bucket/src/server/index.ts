export { type LoadedCredentials, loadOrCreateCredentials } from "./credentials-file.ts";
export { type BucketServer, type ServeBucketOptions, serveBucket } from "./serve-bucket.ts";
