// From an answer that is no success to what it means. A known text decides; otherwise the status does, and then carefully: only
// the router's own words prove that nothing was sent.
import { z } from "zod";
import { type AnswerName, answers } from "./answer-table.ts";
import { parseJson } from "./json.ts";
import type { Purpose, Trouble } from "./trouble.ts";

const maxTextCharacters = 200;
const maxProblems = 64;

const byText = new Map<string, AnswerName>();
for (const [name, { texts }] of Object.entries(answers)) {
  for (const [status, known] of Object.entries<readonly string[]>(texts)) {
    for (const text of known) byText.set(`${status} ${text}`, name as AnswerName);
  }
}

/** What is said of a submission alone. As an answer to a read or a cancellation it is no router's. */
const ofSubmissions: ReadonlySet<AnswerName> = new Set([
  "REQUEST_REFUSED",
  "AT_CAPACITY",
  "ID_REFUSED",
  "ID_CONFLICT",
]);

/** What an answer means to a call with this purpose, whose status is not one that the call hopes for. */
export function classifyAnswer(status: number, body: Uint8Array, purpose: Purpose): Trouble {
  const said = readRefusal(body);
  const known = said.text === undefined ? undefined : byText.get(`${status} ${said.text}`);
  const name = toCall(known ?? byStatus(status, said.isJson), purpose);
  const { sent, next, repeat, advice } = answers[name];
  return {
    code: `CELLKIT_EXECUTION_${name}`,
    sent,
    next,
    repeat,
    advice,
    // Only words that are known get into a message: others may quote the request.
    what: known === undefined ? `the answer was ${status}` : `the answer was ${status} "${said.text}"`,
    wordsKnown: known !== undefined,
    status,
    routerText: said.text,
    reason: said.reason,
    detail: said.detail,
    problems: said.problems,
  };
}

function byStatus(status: number, isJson: boolean): AnswerName {
  if (status >= 300 && status < 400) return "REDIRECTED";
  if (status === 401 || status === 403) return "UNAUTHORIZED";
  // A dispatcher answers 400 with its parser's own words, and 422 to a prewarm with a reason; but always as JSON.
  if ((status === 400 || status === 422) && isJson) return "REQUEST_REFUSED";
  return [429, 500, 502, 503, 504].includes(status) ? "GATEWAY" : "UNEXPECTED_ANSWER";
}

/** A prewarm uses up no id; a read is not refused for what the request says. */
function toCall(name: AnswerName, purpose: Purpose): AnswerName {
  if (purpose === "submit" || !ofSubmissions.has(name)) return name;
  if (purpose !== "prewarm") return "UNEXPECTED_ANSWER";
  return name === "AT_CAPACITY" ? "PREWARM_BUSY" : "PREWARM_REFUSED";
}

const shortText = z.string().transform((text) => text.slice(0, maxTextCharacters));

const refusal = z.object({
  error: shortText,
  reason: shortText.optional().catch(undefined),
  detail: shortText.optional().catch(undefined),
  problems: z
    .array(z.object({ code: shortText, field: shortText }))
    .transform((problems) => problems.slice(0, maxProblems))
    .optional()
    .catch(undefined),
});

/** What a refusal says: JSON of a router or dispatcher, or one line of text of an edge. */
function readRefusal(
  body: Uint8Array,
): Partial<z.output<typeof refusal>> & { text?: string; isJson: boolean } {
  try {
    const { error, ...rest } = refusal.parse(parseJson(body));
    return { text: error, isJson: true, ...rest };
  } catch {
    const [line = ""] = new TextDecoder().decode(body.subarray(0, 4 * maxTextCharacters)).split(/[\r\n]/, 1);
    return /^[\x20-\x7e]{1,200}$/.test(line) ? { text: line, isJson: false } : { isJson: false };
  }
}
