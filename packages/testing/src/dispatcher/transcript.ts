import type { CallKind } from "../core/call.ts";

/** One call, as it came. */
export interface RecordedCall {
  /** Which call it was, from 0, over all lives of the dispatcher. */
  readonly index: number;
  readonly call: CallKind;
  /** The execution it is about: from the path, or the `id` of a submitted body where that is text. */
  readonly id: string | undefined;
  /** Empty, as are path and fields, where they could not be read. */
  readonly method: string;
  readonly path: string;
  /** Fields as they came, with their capitals, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Of what was no whole request: everything that came. */
  readonly body: Uint8Array;
  /** The status that was answered; undefined while there is none, and when there never will be. */
  status: number | undefined;
}

/** A call in one line, without its credential. */
export function describeCall({ index, method, path, id, status }: RecordedCall): string {
  const about = id === undefined || path.includes(id) ? "" : ` (${id})`;
  const what = method === "" ? "bytes that are no request" : `${method} ${path}${about}`;
  return `#${index} ${what} → ${status ?? "no answer"}`;
}

/** The `id` of a submitted body, as far as it can be read. */
export function submittedId(body: Uint8Array): string | undefined {
  try {
    const { id } = JSON.parse(Buffer.from(body).toString("utf8")) as { id?: unknown };
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}
