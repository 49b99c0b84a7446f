/** What this package needs of a bucket: a part of `Bucket` of `@cellkit/bucket`, so that any of its stores fits. */

/** What a conditional write answers. */
export type ConditionalWrite =
  | { readonly kind: "applied"; readonly etag: string }
  | { readonly kind: "rejected" }
  | {
      readonly kind: "ambiguous";
      readonly cause: Error;
      settle(options?: Waiting): Promise<{ kind: "applied"; etag: string } | { kind: "rejected" }>;
    };

/** How long to wait for a call. */
export interface Waiting {
  readonly signal?: AbortSignal;
}

/** A bucket as deployments see it. */
export interface Bucket {
  get(
    key: string,
    options?: Waiting & { readonly range?: { start: number; end?: number } },
  ): Promise<{ body: Uint8Array; etag: string; sizeBytes: number } | undefined>;
  put(
    key: string,
    body: Uint8Array | string,
    options?: Waiting & { contentType?: string },
  ): Promise<{ etag: string }>;
  createIfAbsent(key: string, body: Uint8Array | string, options?: Waiting): Promise<ConditionalWrite>;
  replaceIf(
    key: string,
    body: Uint8Array | string,
    etag: string,
    options?: Waiting,
  ): Promise<ConditionalWrite>;
}
