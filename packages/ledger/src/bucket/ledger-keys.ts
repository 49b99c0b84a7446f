/** Where a ledger's objects lie in a bucket. */

/** What one key below a ledger's folder stands for. */
export type LedgerKey =
  | { kind: "record"; key: string }
  /** Says that a record is to be swept; its content is the ETag of that record. */
  | { kind: "mark"; key: string }
  | { kind: "creation" }
  | { kind: "foreign" };

/** The names of one ledger's objects. */
export class LedgerKeys {
  /** What all of them begin with, up to and with the last slash. */
  readonly folder: string;
  /** Says that the ledger was created, and which one it is. */
  readonly creation: string;

  constructor(name: string) {
    this.folder = `ledger/${name}/`;
    this.creation = `${this.folder}ledger.json`;
  }

  /** @param key 64 lowercase hex digits */
  record(key: string): string {
    return `${this.folder}${key}.json`;
  }

  /** @param key 64 lowercase hex digits */
  mark(key: string): string {
    return `${this.folder}${key}.retired`;
  }

  /** What an object of the folder is. */
  parse(objectKey: string): LedgerKey {
    if (objectKey === this.creation) return { kind: "creation" };
    const [, key, suffix] =
      /^([0-9a-f]{64})\.(json|retired)$/.exec(objectKey.slice(this.folder.length)) ?? [];
    if (key === undefined) return { kind: "foreign" };
    return { kind: suffix === "json" ? "record" : "mark", key };
  }
}
