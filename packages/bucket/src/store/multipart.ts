/**
 * Multipart uploads: `uploads/<id>/upload.json` and one object file a part. Completing copies the parts into one staged
 * object, so the object appears whole or not at all. An upload that is neither completed nor aborted stays.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { keyBytes } from "../core/object-key.ts";
import { errnoOf } from "./disk-failure.ts";
import { type ObjectHead, openObject, readHead } from "./object-file.ts";
import type { Condition, ObjectStore, Outcome } from "./object-store.ts";
import type { StagedObject } from "./staging.ts";

/** S3's limit. */
export const PART_LIMIT_COUNT = 10_000;

const uploadSchema = z.object({
  key: z.string(),
  headers: z.record(z.string(), z.string()),
  startedMs: z.number(),
});

/** One upload under way. */
export interface Upload extends z.infer<typeof uploadSchema> {
  id: string;
}

/** A part as the client names it when it completes. */
export interface PartName {
  partNumber: number;
  etag: string;
}

/** Why an upload was not completed. */
export type CompleteOutcome = Outcome | { kind: "invalid-part"; partNumber: number } | { kind: "too-large" };

/** The multipart uploads of one store. */
export class MultipartUploads {
  readonly #store: ObjectStore;
  readonly #root: string;

  constructor(store: ObjectStore) {
    this.#store = store;
    this.#root = store.layout.uploads;
  }

  /** Begins an upload and answers its id. */
  async create(key: string, headers: Readonly<Record<string, string>>, startedMs: number): Promise<string> {
    keyBytes(key);
    const id = randomBytes(16).toString("hex");
    const folder = join(this.#root, id);
    await this.#store.guarded(async () => {
      await mkdir(folder);
      await writeFile(join(folder, "upload.json"), JSON.stringify({ key, headers, startedMs }), {
        flush: true,
      });
    });
    await this.#store.makeDurable(join(folder, "upload.json"));
    return id;
  }

  /** The upload of this id for this key; undefined when there is none. */
  async find(id: string, key: string): Promise<Upload | undefined> {
    const upload = await this.#read(id);
    return upload?.key === key ? upload : undefined;
  }

  /** All uploads under way, by key and id. */
  async list(): Promise<Upload[]> {
    const ids = await this.#store.guarded(() => readdir(this.#root));
    const uploads = await Promise.all(ids.map((id) => this.#read(id)));
    return uploads
      .filter((upload) => upload !== undefined)
      .sort((a, b) => Buffer.compare(Buffer.from(a.key + a.id), Buffer.from(b.key + b.id)));
  }

  /** Publishes a finished part; an earlier one of the same number is replaced. */
  async putPart(id: string, partNumber: number, staged: StagedObject): Promise<void> {
    const path = this.#partPath(id, partNumber);
    await this.#store.guarded(async () => {
      await staged.persist();
      await rename(staged.path, path);
    });
    staged.published();
    await this.#store.makeDurable(path);
  }

  /** The parts that are there, by number. */
  async parts(id: string): Promise<{ partNumber: number; head: ObjectHead }[]> {
    const names = await this.#store.guarded(() => readdir(join(this.#root, id)));
    const numbers = names.filter((name) => /^\d{5}$/.test(name)).sort();
    const parts: { partNumber: number; head: ObjectHead }[] = [];
    for (const name of numbers) {
      const head = await this.#store.guarded(() => readHead(join(this.#root, id, name)));
      if (head !== undefined) parts.push({ partNumber: Number(name), head });
    }
    return parts;
  }

  /** Joins the named parts into the object, if the condition holds, and removes the upload. */
  async complete(
    upload: Upload,
    parts: readonly PartName[],
    condition: Condition,
    limitBytes: number,
  ): Promise<{ outcome: CompleteOutcome; etag: string }> {
    const staged = this.#store.stage();
    try {
      const digests = createHash("md5");
      let sizeBytes = 0;
      for (const { partNumber, etag } of parts) {
        const part = await this.#store.guarded(() => openObject(this.#partPath(upload.id, partNumber)));
        try {
          if (part?.head.etag !== etag) return { outcome: { kind: "invalid-part", partNumber }, etag: "" };
          sizeBytes += part.head.sizeBytes;
          if (sizeBytes > limitBytes) return { outcome: { kind: "too-large" }, etag: "" };
          digests.update(Buffer.from(etag, "hex"));
          for await (const piece of part.read(0, part.head.sizeBytes)) {
            await this.#store.guarded(() => staged.write(piece));
          }
        } finally {
          part?.close();
        }
      }
      const etag = `${digests.digest("hex")}-${parts.length}`;
      staged.finish(upload.headers, etag);
      const outcome = await this.#store.put(upload.key, staged, condition);
      if (outcome.kind === "applied") await this.abort(upload.id);
      return { outcome, etag };
    } finally {
      await staged.discard();
    }
  }

  /** Removes an upload and its parts. */
  async abort(id: string): Promise<void> {
    await this.#store.guarded(() => rm(join(this.#root, id), { recursive: true, force: true }));
  }

  #partPath(id: string, partNumber: number): string {
    return join(this.#root, id, String(partNumber).padStart(5, "0"));
  }

  async #read(id: string): Promise<Upload | undefined> {
    if (!/^[0-9a-f]{32}$/.test(id)) return undefined;
    return await this.#store.guarded(async () => {
      try {
        const text = await readFile(join(this.#root, id, "upload.json"), "utf8");
        return { id, ...uploadSchema.parse(JSON.parse(text)) };
      } catch (error) {
        // Just being made, or being removed.
        if (errnoOf(error) === "ENOENT" || error instanceof SyntaxError) return undefined;
        throw error;
      }
    });
  }
}
