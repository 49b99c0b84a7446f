// Where the head of a dispatcher's answer lies, and what status it has (execution API, section 4.5). Callers read the same bytes once
// more, each in a way of its own: what could be one status here and another one there is no answer at all.

/** An answer's last head, which is the one that counts. */
export interface AnswerHead {
  /** 200 to 999. */
  readonly status: number;
  /** Where it begins: behind those of 1xx, which are none of the answer's. */
  readonly at: number;
  /** Where its body begins. */
  readonly bodyAt: number;
}

/** What the bytes so far are. */
export type AnswerReading =
  | ({ readonly kind: "head" } & AnswerHead)
  /** The head that begins at `at` has no end yet. */
  | { readonly kind: "more"; readonly at: number }
  /** No answer: it does not begin with `HTTP/1.x SP 3DIGIT`, or changes the protocol. */
  | { readonly kind: "none" };

const headEnd = "\r\n\r\n";
const statusLine = /^HTTP\/1\.\d ([1-9]\d\d)(?: [^\r\n]*)?\r\n/;
/** How much of a head its status is looked for in. A reason may be longer, and then it is no status line. */
const lineBytes = 1_024;

/**
 * Reads the begin of an answer.
 * @param at where to go on: the `at` of what was read before
 */
export function readAnswerHead(answer: Uint8Array, at = 0): AnswerReading {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length);
  let headAt = at;
  for (;;) {
    const end = bytes.indexOf(headEnd, headAt);
    if (end === -1) return { kind: "more", at: headAt };
    const bodyAt = end + headEnd.length;
    const line = bytes.toString("latin1", headAt, Math.min(bodyAt, headAt + lineBytes));
    const status = Number(statusLine.exec(line)?.[1]);
    if (!(status >= 100) || status === 101) return { kind: "none" };
    if (status >= 200) return { kind: "head", status, at: headAt, bodyAt };
    headAt = bodyAt;
  }
}
