// What one dispatcher knows of an id, by one GET.
import { Dispatchers } from "../backend/dispatchers.ts";
import { BackendError } from "../errors.ts";
import { defaultLimits } from "../router-limits.ts";
import { type Knowledge, knowledgeOf } from "./judge-run.ts";

/** Whom to ask for what. */
export interface BackendQuestion {
  readonly origin: string;
  /** One that routers take. */
  readonly id: string;
  /** The backend token. */
  readonly token: Uint8Array;
}

/** Dispatchers that are only read from. */
export function readingDispatchers(signal: AbortSignal): Dispatchers {
  return new Dispatchers({ bounds: defaultLimits, lookup: undefined, signal, emit: () => undefined });
}

/** Asks one of them. */
export async function askBackend(
  dispatchers: Dispatchers,
  { origin, id, token }: BackendQuestion,
): Promise<Knowledge> {
  try {
    const { status, bytes, bodyAt } = await dispatchers.ask("read", origin, id, token);
    return knowledgeOf(id, { status, body: bytes.toString("utf8", bodyAt) });
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    return knowledgeOf(id, { silent: error.message });
  }
}

/** What a dispatcher knows of an id: one GET over a connection of its own, past all routers. Never rejects. */
export function readAtBackend(
  question: BackendQuestion,
  signal: AbortSignal = new AbortController().signal,
): Promise<Knowledge> {
  return askBackend(readingDispatchers(signal), question);
}
