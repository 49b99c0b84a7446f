// Small texts beside a ledger, one for each replica, wherever the ledger lies.

/** One replica's note. */
export interface ReplicaNote {
  /** Whose it is, as its place says. */
  readonly replica: string;
  readonly text: string;
  /** When it was written, by the store's clock, Unix milliseconds: comparable with other notes and with nothing else. */
  readonly writtenMs: number;
}

/** Where the notes are. Methods reject with the store's own errors. */
export interface ReplicaNotes {
  /** Writes a replica's note in place of the one before. */
  write(replica: string, text: string): Promise<void>;
  /** All that are there, at most 1,000; where a store can tell, the latest ones. */
  list(): Promise<ReplicaNote[]>;
  /** The store's clock, Unix milliseconds. Only of stores that tell it. */
  nowMs?(): Promise<number>;
  remove(replica: string): Promise<void>;
  /** Takes away what writers that died left half written before that moment of the store's clock. Only of stores where that happens. */
  sweep?(beforeMs: number): Promise<void>;
  close(): Promise<void>;
}

/** What a note is called. */
export const notePrefix = "cellkit-router-";
/** The most notes that are looked at. */
export const maxNoteCount = 1_000;

/** The replica in a note's name; undefined for other names. */
export function replicaOf(name: string): string | undefined {
  return new RegExp(`^${notePrefix}([A-Za-z0-9_.-]{1,48})$`).exec(name)?.[1];
}
