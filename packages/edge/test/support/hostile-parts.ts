// What hostile requests are made of.

/** A request that would pass by itself: where it reaches the backend, it was smuggled. */
export const inner = "GET /v1/health HTTP/1.1\r\nHost: smuggled\r\n\r\n";
/** The begins of heads, and of a chunked request. */
export const post = "POST /v1/executions HTTP/1.1\r\nHost: e\r\n";
export const get = "GET /v1/health HTTP/1.1\r\nHost: e\r\n";
export const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;

/** A request, and whether the edge keeps the connection. */
export type Row = [name: string, bytes: string, keeps?: "keeps"];
