// The few kinds of answer that the Worker and its rooms give.

/** An answer with a JSON body. */
export function json(value: unknown, status = 200): Response {
  return Response.json(value, { status });
}

/** A refusal: `{ "error": … }`, a sentence for whoever reads the client's log. */
export function refusal(status: number, error: string): Response {
  return json({ error }, status);
}

/** 405 that names the method the route does take. */
export function methodRefusal(allow: string): Response {
  return Response.json({ error: `this route takes ${allow}` }, { status: 405, headers: { allow } });
}
