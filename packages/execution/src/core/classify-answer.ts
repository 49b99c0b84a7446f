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

/** What routers and dispatchers say of a route that they do not have. */
const noRoute = "not found";
const noRouteAdvice =
  "a router has this route, so a dispatcher behind it may have said this; check that the URL is a router's, with a path only if something before it takes that away; never use a new id";

/** What an answer means to a call with this purpose, whose status is not one that the call hopes for. */
export function classifyAnswer(status: number, body: Uint8Array, purpose: Purpose): Trouble {
  const said = readRefusal(body);
  const known = said.text === undefined ? undefined : byText.get(`${status} ${said.text}`);
  return {
    ...meaningOf(known ?? byStatus(status, said.isJson), said.text, purpose),
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

type Meaning = Pick<Trouble, "code" | "sent" | "next" | "repeat" | "advice">;

function meaningOf(name: AnswerName, text: string | undefined, purpose: Purpose): Meaning {
  const meant = toCall(name, text, purpose);
  const { sent, next, repeat, advice } = answers[meant];
  const meaning = { code: `CELLKIT_EXECUTION_${meant}`, sent, next, repeat, advice } as const;
  if (text !== noRoute || name !== "ROUTE_UNKNOWN") return meaning;
  if (purpose === "submit") return { ...meaning, advice: noRouteAdvice };
  return purpose === "prewarm" ? { ...meaning, sent: "maybe" } : meaning;
}

/** A prewarm uses up no id; a read is not refused for what the request says. */
function toCall(name: AnswerName, text: string | undefined, purpose: Purpose): AnswerName {
  if (purpose === "submit") return toSubmission(name, text);
  if (purpose === "prewarm" && name === "UNKNOWN_EXECUTION") return "UNEXPECTED_ANSWER";
  if (!ofSubmissions.has(name)) return name;
  if (purpose !== "prewarm") return "UNEXPECTED_ANSWER";
  return name === "AT_CAPACITY" ? "PREWARM_BUSY" : "PREWARM_REFUSED";
}

/**
 * A router has the route of submissions, and binds an id that it does not know: these are a dispatcher's words then, which a router
 * passes on behind the claim. The edge's own text for a route proves that it passed nothing on.
 */
function toSubmission(name: AnswerName, text: string | undefined): AnswerName {
  if (name === "UNKNOWN_EXECUTION") return "OWNER_LOST";
  return name === "ROUTE_UNKNOWN" && text === noRoute ? "UNEXPECTED_ANSWER" : name;
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
