/**
 * The embedded S3 server: one bucket, kept in a directory of this machine, for the AWS SDKs and for workerd.
 * Every request is authenticated by its head before a byte of its body is read.
 */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { BucketListenError, BucketOptionError } from "../errors.ts";
import { errnoOf } from "../store/disk-failure.ts";
import { ObjectStore } from "../store/object-store.ts";
import { Authenticator } from "./authenticate.ts";
import { MultipartRequests } from "./multipart-requests.ts";
import type { Site } from "./route.ts";
import { Service } from "./service.ts";

/** Of one PUT, as Amazon S3. */
const OBJECT_LIMIT_BYTES = 5 * 1024 ** 3;

/** Options of {@link serveBucket}. */
export interface ServeBucketOptions {
  /** The directory of the bucket; made if absent. `openBucket("file://…")` may use it at the same time. */
  directory: string;
  /** The key pair that clients must sign with. */
  credentials: { accessKeyId: string; secretAccessKey: string };
  /** The one bucket's name. @default "cells" */
  bucketName?: string | undefined;
  /** @default "127.0.0.1": nobody but this machine. There is no TLS: put the server behind a proxy before you change it. */
  host?: string | undefined;
  /** 0 takes a free one. @default 0 */
  port?: number | undefined;
  /** The region that clients must sign for. @default "us-east-1" */
  region?: string | undefined;
  /** The largest object or part. @default 5_368_709_120 (5 GiB, as Amazon S3) */
  maxObjectBytes?: number | undefined;
  /** Told of failures that clients see as 500 or 507, for the log. @default nobody */
  onFailure?: ((error: Error) => void) | undefined;
}

/** A running server. */
export interface BucketServer extends AsyncDisposable {
  /** `http://host:port`, the clients' endpoint. */
  readonly endpoint: string;
  readonly bucketName: string;
  readonly host: string;
  readonly port: number;
  readonly region: string;
  /** Finishes what runs (0.75 s at most; what takes longer is cut), then stops. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts the server.
 * @throws BucketListenError (CELLKIT_BUCKET_LISTEN), BucketOptionError, BucketFormatError, BucketAccessDeniedError, …
 */
export async function serveBucket(options: ServeBucketOptions): Promise<BucketServer> {
  const { bucketName = "cells", host = "127.0.0.1", port = 0, region = "us-east-1" } = options;
  if (!/^[a-z0-9][a-z0-9.-]{0,62}$/.test(bucketName)) {
    throw new BucketOptionError(
      `bucketName is ${JSON.stringify(bucketName)}; it takes lower-case letters, digits, dots, hyphens`,
    );
  }
  if (options.credentials.accessKeyId === "" || options.credentials.secretAccessKey === "") {
    throw new BucketOptionError("credentials must not be empty");
  }
  const store = await ObjectStore.open(resolve(options.directory));
  const site: Site = {
    store,
    multipart: new MultipartRequests(store),
    bucketName,
    region,
    objectLimitBytes: options.maxObjectBytes ?? OBJECT_LIMIT_BYTES,
  };
  const service = new Service(
    site,
    new Authenticator(options.credentials, region),
    options.onFailure ?? (() => {}),
  );
  try {
    await listen(service.server, host, port);
  } catch (error) {
    await store.close();
    throw new BucketListenError(host, port, errnoOf(error) ?? String(error), { cause: error });
  }
  const address = service.server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= service.close().then(() => store.close());
    return closed;
  };
  return {
    endpoint: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    bucketName,
    host,
    port: address.port,
    region,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((done, failed) => {
    server.once("error", failed);
    server.listen(port, host, () => {
      server.off("error", failed);
      done();
    });
  });
}
