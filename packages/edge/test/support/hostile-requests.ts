// Requests that HTTP servers have read in two ways. Each is made for this suite: the classes are those of the HTTP Garden's
// trophies (github.com/narfindustries/http-garden, TROPHIES.md), of llhttp's test messages (github.com/nodejs/llhttp, test/request)
// and our own. Strings are bytes, one character each.

import { brokenBodies } from "./hostile-bodies.ts";
import { malformed } from "./hostile-heads.ts";
import { chunked, get, inner, post, type Row } from "./hostile-parts.ts";

/** What must come of one. */
export interface HostileRequest {
  name: string;
  bytes: string;
  /** The statuses of all answers, in order. */
  statuses: number[];
  /** Bodies of the requests that the backend may see, in order; none where nothing is given. */
  forwarded?: string[];
  /** The edge keeps the connection. @default false */
  keeps?: boolean;
}

/** A head in order whose target, method or fields no mode lets through. */
const noRoute: readonly Row[] = [
  ["an absolute target", `GET http://e/v1/health HTTP/1.1\r\nHost: e\r\n\r\n`, "keeps"],
  [
    "an absolute target of another host",
    "GET http://127.0.0.1:1/v1/health HTTP/1.1\r\nHost: e\r\n\r\n",
    "keeps",
  ],
  ["two slashes first", "GET //v1/health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["two slashes within", "GET /v1//health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a slash at the end", "GET /v1/health/ HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a backslash", "GET /v1\\health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a dot segment", "GET /v1/./health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["two dots", "GET /v1/executions/../health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["two dots as an id", "GET /v1/executions/.. HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["two dots as an id, before a verb", "GET /v1/executions/../audit HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an escaped slash", "POST /v1/executions%2fescape HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an escaped letter", "GET /v1/h%65alth HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an escaped escape", "GET /v1/executions/%2541 HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["escaped dots", "GET /v1/executions/%2e%2e/%2e%2e/drain HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an escaped line end", "GET /v1/executions/a%0d%0aX:%20y HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an escaped NUL", "GET /v1/health%00 HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["half an escape", "GET /v1/executions/a% HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an overlong slash", "GET /v1%c0%afhealth HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a query", "GET /v1/health?a=b HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a bare question mark", "GET /v1/health? HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a fragment", "GET /v1/health#a HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["a parameter", "GET /v1/health;a=b HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["other case", "GET /V1/health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  ["TRACE", "TRACE /v1/health HTTP/1.1\r\nHost: e\r\n\r\n", "keeps"],
  [
    "an Upgrade to a WebSocket",
    `${get}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    "keeps",
  ],
  [
    "an Upgrade to HTTP/2",
    `${get}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
    "keeps",
  ],
  ["an Upgrade that nobody names in Connection", `${get}Upgrade: x\r\n\r\n`, "keeps"],
  ["CONNECT", `CONNECT 127.0.0.1:8788 HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  [
    "the body of a refused request",
    `POST /v1/drain HTTP/1.1\r\nHost: e\r\nContent-Length: ${inner.length}\r\n\r\n${inner}${inner}`,
  ],
  [
    "the chunks of a refused request",
    `POST /v1/drain HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n${inner}`,
  ],
];

/** What looks odd and has one reading only. */
const clear: HostileRequest[] = [
  {
    name: "chunks of many sizes",
    bytes: `${chunked}1\r\na\r\n0003\r\nbcd\r\nA\r\n0123456789\r\n000\r\n\r\n`,
    statuses: [200],
    forwarded: ["abcd0123456789"],
    keeps: true,
  },
  {
    name: "CHUNKED in capitals",
    bytes: `${post}TRANSFER-ENCODING: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\n`,
    statuses: [200],
    forwarded: ["a"],
    keeps: true,
  },
  {
    name: "chunk extensions",
    bytes: `${chunked}1;a;b=c;d="e;\\"f"\r\na\r\n0;g\r\n\r\n`,
    statuses: [200],
    forwarded: ["a"],
    keeps: true,
  },
  {
    name: "trailers, which go nowhere",
    bytes: `${chunked}1\r\na\r\n0\r\nX-Celln-Backend: x\r\nHost: x\r\n\r\n`,
    statuses: [200],
    forwarded: ["a"],
    keeps: true,
  },
  {
    name: "a trailer without a space, which reads like a request",
    bytes: `${chunked}0\r\nX:POST /v1/executions HTTP/1.1\r\n\r\n`,
    statuses: [200],
    forwarded: [""],
    keeps: true,
  },
  {
    name: "a byte after the last chunk",
    bytes: `${chunked}0\r\n\r\n\x00`,
    statuses: [200],
    forwarded: [""],
  },
  {
    name: "a request within the chunks",
    bytes: `${chunked}${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
    statuses: [200],
    forwarded: [inner],
    keeps: true,
  },
  {
    name: "a request within a body",
    bytes: `${post}Content-Length: ${inner.length}\r\n\r\n${inner}`,
    statuses: [200],
    forwarded: [inner],
    keeps: true,
  },
  {
    name: "a length with zeros before it",
    bytes: `${post}Content-Length: 0010\r\n\r\n0123456789`,
    statuses: [200],
    forwarded: ["0123456789"],
    keeps: true,
  },
  {
    name: "spaces around a length",
    bytes: `${post}Content-Length:   1  \r\n\r\nZ`,
    statuses: [200],
    forwarded: ["Z"],
    keeps: true,
  },
  {
    name: "a length of 0, then another request",
    bytes: `${post}Content-Length: 0\r\n\r\n${inner}`,
    statuses: [200, 200],
    forwarded: ["", ""],
    keeps: true,
  },
  {
    name: "empty lines before a request",
    bytes: `\r\n\r\n${inner}`,
    statuses: [200],
    forwarded: [""],
    keeps: true,
  },
  {
    name: "three requests at once, the second refused",
    bytes: `${inner}GET /v1/cells HTTP/1.1\r\nHost: e\r\n\r\n${inner}`,
    statuses: [200, 404, 200],
    forwarded: ["", ""],
    keeps: true,
  },
  {
    name: "high bytes in a value",
    bytes: `${get}X-Celln-Note: \x85\xe9\xa0\r\n\r\n`,
    statuses: [200],
    forwarded: [""],
    keeps: true,
  },
  {
    name: "two spaces before the target",
    bytes: `GET  /v1/health HTTP/1.1\r\nHost: e\r\n\r\n${inner}`,
    statuses: [200, 200],
    forwarded: ["", ""],
    keeps: true,
  },
  {
    name: "HTTP/1.0 without Host",
    bytes: "GET /v1/health HTTP/1.0\r\n\r\n",
    statuses: [200],
    forwarded: [""],
  },
  {
    name: "nothing after Connection: close",
    bytes: `${get}Connection: close\r\n\r\n${inner}`,
    statuses: [200],
    forwarded: [""],
  },
  {
    name: "a good request, then a broken one",
    bytes: `${inner}INVALID\r\n\r\n${inner}`,
    statuses: [200],
    forwarded: [""],
  },
  {
    name: "a good request, then one with two lengths",
    bytes: `${inner}${post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    statuses: [200],
    forwarded: [""],
  },
  {
    name: "a body that is too long, then another request",
    bytes: `${post}Content-Length: 65537\r\n\r\n${"a".repeat(65_537)}${inner}`,
    statuses: [413],
  },
  {
    name: "chunks that are too long, then another request",
    bytes: `${chunked}10001\r\n${"a".repeat(65_537)}\r\n0\r\n\r\n${inner}`,
    statuses: [413],
  },
  {
    name: "an unknown expectation",
    bytes: `${post}Expect: magic\r\nContent-Length: 1\r\n\r\nZ${inner}`,
    statuses: [417],
  },
  {
    name: "a head that is too long",
    bytes: `${get}X: ${"a".repeat(17_000)}\r\n\r\n${inner}`,
    statuses: [431],
  },
  {
    name: "a target that is too long",
    bytes: `GET /v1/executions/${"a".repeat(17_000)} HTTP/1.1\r\nHost: e\r\n\r\n${inner}`,
    statuses: [431],
  },
  { name: "very many fields", bytes: `${get}${"A:\r\n".repeat(4_200)}\r\n${inner}`, statuses: [431] },
];

/** All of them. */
export const hostileRequests: HostileRequest[] = [
  ...malformed.map(([name, bytes]) => ({ name, bytes, statuses: [400] })),
  ...brokenBodies.map(([name, bytes]) => ({ name, bytes, statuses: [413] })),
  ...noRoute.map(([name, bytes, keeps]) => ({ name, bytes, statuses: [404], keeps: keeps === "keeps" })),
  ...clear,
];
