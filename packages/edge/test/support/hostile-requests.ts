// Requests that HTTP servers have read in two ways. Each is made for this suite: the classes are those of the HTTP Garden's
// trophies (github.com/narfindustries/http-garden, TROPHIES.md), of llhttp's test messages (github.com/nodejs/llhttp, test/request)
// and our own. Strings are bytes, one character each.

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

/** A request that would pass by itself: where it reaches the backend, it was smuggled. */
const inner = "GET /v1/health HTTP/1.1\r\nHost: smuggled\r\n\r\n";
const post = "POST /v1/executions HTTP/1.1\r\nHost: e\r\n";
const get = "GET /v1/health HTTP/1.1\r\nHost: e\r\n";
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;

type Row = [name: string, bytes: string];

/** Refused as malformed before anything is asked of the backend, and the connection ends. */
const malformed: Row[] = [
  // Two lengths, or none that can be told.
  [
    "Content-Length, then chunked",
    `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
  ],
  [
    "chunked, then Content-Length",
    `${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${inner}`,
  ],
  [
    "a length of 0 beside chunks",
    `${post}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
  ],
  [
    "two lengths, the second longer",
    `${post}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
  ],
  [
    "two lengths, the first longer",
    `${post}Content-Length: ${inner.length}\r\nContent-Length: 0\r\n\r\n${inner}`,
  ],
  ["two lengths that agree", `${post}Content-Length: 1\r\nContent-Length: 1\r\n\r\nZ${inner}`],
  ["lengths in a list", `${post}Content-Length: 1, 1\r\n\r\nZ${inner}`],
  ["an empty length", `${post}Content-Length: \r\n\r\n${inner}`],
  [
    "an empty length before another",
    `${post}Content-Length:\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
  ],
  ["a length with a plus", `${post}Content-Length: +${inner.length}\r\n\r\n${inner}`],
  ["a length with a minus", `${post}Content-Length: -48\r\n\r\n${inner}`],
  ["a length with an underscore", `${post}Content-Length: 1_0\r\n\r\n0123456789${inner}`],
  ["a hexadecimal length", `${post}Content-Length: 0x2a\r\n\r\n${inner}`],
  ["a length with a letter after it", `${post}Content-Length: 1Z\r\n\r\nZ${inner}`],
  ["a length with a space in it", `${post}Content-Length: 4 2\r\n\r\n${inner}`],
  ["a length with a fraction", `${post}Content-Length: 1.0\r\n\r\nZ${inner}`],
  ["a length with an exponent", `${post}Content-Length: 1e1\r\n\r\n0123456789${inner}`],
  ["a length past 64 bits", `${post}Content-Length: 18446744073709551617\r\n\r\nZ${inner}`],
  [
    "a length that wraps to the smuggled one",
    `${post}Content-Length: ${2n ** 64n + BigInt(inner.length)}\r\n\r\n${inner}`,
  ],
  ["a length with a NUL", `${post}Content-Length: 1\x00\r\n\r\nZ${inner}`],
  ["a length of other digits", `${post}Content-Length: \xb2\r\n\r\nZ${inner}`],
  ["a length before an NBSP", `${post}Content-Length: 1\xa0\r\n\r\nZ${inner}`],
  // Codings.
  ["an unknown coding", `${post}Transfer-Encoding: blah\r\n\r\n1\r\nZ\r\n0\r\n\r\n${inner}`],
  ["identity", `${post}Transfer-Encoding: identity\r\n\r\n${inner}`],
  ["identity beside a length", `${post}Transfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nZ${inner}`],
  ["an empty coding", `${post}Transfer-Encoding:\r\n\r\n${inner}`],
  ["an empty coding beside a length", `${post}Content-Length: 1\r\nTransfer-Encoding: \r\n\r\nZ${inner}`],
  ["a comma before chunked", `${post}Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n${inner}`],
  ["a comma after chunked", `${post}Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n${inner}`],
  [
    "a comma before chunked, with a length",
    `${post}Transfer-Encoding: ,chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${inner}`,
  ],
  ["chunked twice in a list", `${post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${inner}`],
  [
    "chunked twice",
    `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nZ\r\n0\r\n\r\n${inner}`,
  ],
  [
    "chunked, then identity",
    `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${inner}`,
  ],
  [
    "identity, then chunked",
    `${post}Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
  ],
  ["chunked before gzip", `${post}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n${inner}`],
  ["gzip before chunked", `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${inner}`],
  ["chunked in quotes", `${post}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n${inner}`],
  ["chunked with a parameter", `${post}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n${inner}`],
  ["xchunked", `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`],
  ["chunkedx", `${post}Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n${inner}`],
  ["chunked between NBSPs", `${post}Transfer-Encoding: \xa0chunked\xa0\r\n\r\n0\r\n\r\n${inner}`],
  ["chunked between high bytes", `${post}Transfer-Encoding: \xffchunked\xff\r\n\r\n0\r\n\r\n${inner}`],
  ["chunked after a vertical tab", `${post}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${inner}`],
  ["chunked with a NUL", `${post}Transfer-Encoding: chunked\x00\r\n\r\n0\r\n\r\n${inner}`],
  [
    "chunks in HTTP/1.0",
    `POST /v1/executions HTTP/1.0\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
  ],
  // Names of fields.
  ["a space before the colon", `${post}Content-Length : ${inner.length}\r\n\r\n${inner}`],
  ["a tab before the colon", `${post}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n${inner}`],
  ["no colon", `${post}Content-Length 10\r\n\r\n0123456789${inner}`],
  ["a name alone", `${post}Te\r\n\r\n${inner}`],
  [
    "a name over two lines",
    `${post}Transfer-\r\nEncoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${inner}`,
  ],
  ["an empty name", `${post}: ignored\r\n\r\n${inner}`],
  ["nothing but a colon", `${post}:\r\nContent-Length: 1\r\n\r\nZ${inner}`],
  ["a NUL in a name", `${post}X\x00Y: 1\r\n\r\n${inner}`],
  ["NEL after a name", `${post}Content-Length\x85: 10\r\n\r\n0123456789${inner}`],
  ["a high byte before a name", `${post}\xefContent-Length: 1\r\n\r\nZ${inner}`],
  ["an at sign in a name", `${post}Fo@: x\r\n\r\n${inner}`],
  ["a parenthesis in a name", `${post}X(Y): x\r\n\r\n${inner}`],
  ["a slash in a name", `${post}X/Y: x\r\n\r\n${inner}`],
  ["a CR for the dash of a name", `${post}Content\rLength: 003\r\n\r\nabc${inner}`],
  ["an escape in a name", `${post}Connection\r\x1b\x35\xd5eep-Alive\r\n\r\n${inner}`],
  // Lines.
  [
    "a space before the first name",
    `POST /v1/executions HTTP/1.1\r\n Content-Length: 1\r\nHost: e\r\n\r\nZ${inner}`,
  ],
  [
    "a tab before the first name",
    `POST /v1/executions HTTP/1.1\r\n\tContent-Length: 1\r\nHost: e\r\n\r\nZ${inner}`,
  ],
  ["a folded value", `${post}X: a\r\n b\r\n\r\n${inner}`],
  ["a length in a folded value", `${post}X: a\r\n Content-Length: ${inner.length}\r\n\r\n${inner}`],
  ["chunked folded", `${post}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${inner}`],
  ["a folded length", `${post}Content-Length: 1\r\n 0\r\n\r\n0123456789${inner}`],
  ["a bare LF between fields", `${post}X: x\nContent-Length: ${inner.length}\r\n\r\n${inner}`],
  ["a bare LF, then chunked", `${post}X: x\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n0\r\n\r\n${inner}`],
  [
    "a bare LF after an empty value",
    `${post}X:\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n0\r\n\r\n${inner}`,
  ],
  ["bare LFs that end the head", `${post}X:\n\n${inner}`],
  ["bare LFs only", `POST /v1/executions HTTP/1.1\nHost: e\n\n${inner}`],
  ["a bare LF after the version", `POST /v1/executions HTTP/1.1\nHost: e\r\n\r\n${inner}`],
  ["a bare LF at the end of the head", `${post}X: x\r\n\n${inner}`],
  ["a bare CR between fields", `${post}X: x\rContent-Length: ${inner.length}\r\n\r\n${inner}`],
  [
    "a bare CR after an empty value",
    `${post}X:\rTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n0\r\n\r\n${inner}`,
  ],
  ["a bare CR in a value", `${post}X: va\rlue\r\n\r\n${inner}`],
  ["a CR and any byte for the end of the head", `${post}\rZ${inner}`],
  ["CR CR LF", `${post}X: x\r\r\nContent-Length: 1\r\n\r\nZ${inner}`],
  ["a NUL in a value", `${post}X: a\x00b\r\n\r\n${inner}`],
  ["a NUL and a CR in a value", `${post}X: v\x00\ralue\r\n\r\n${inner}`],
  ["a NUL at the end of a value", `${post}X: evil\x00\r\n\r\n${inner}`],
  ["a control byte in a value", `${post}X: a\x01b\r\n\r\n${inner}`],
  ["DEL in a value", `${post}X: a\x7fb\r\n\r\n${inner}`],
  // Request line.
  ["HTTP/0.9 without a version", `GET /v1/health\r\n\r\n${inner}`],
  ["HTTP/0.9 with one", `GET /v1/health HTTP/0.9\r\nHost: e\r\n\r\n${inner}`],
  ["HTTP/2.0", `GET /v1/health HTTP/2.0\r\nHost: e\r\n\r\n${inner}`],
  ["HTTP/1.32", `GET /v1/health HTTP/1.32\r\nHost: e\r\n\r\n${inner}`],
  ["HTTP/1", `GET /v1/health HTTP/1\r\nHost: e\r\n\r\n${inner}`],
  ["HTTP/01.1", `GET /v1/health HTTP/01.1\r\nHost: e\r\n\r\n${inner}`],
  ["HTTP/1.10", `GET /v1/health HTTP/1.10\r\nHost: e\r\n\r\n${inner}`],
  ["HTTP/5.6", `GET /v1/health HTTP/5.6\r\nHost: e\r\n\r\n${inner}`],
  ["a version that overflows", `GET /v1/health HTTP/4294967295.255\r\nHost: e\r\n\r\n${inner}`],
  ["CRs in the version", `GET /v1/health HTTP/\r\r1.1\r\nHost: e\r\n\r\n${inner}`],
  ["another protocol", `GET /v1/health ICE/1.0\r\nHost: e\r\n\r\n${inner}`],
  ["nearly HTTP", `GET /v1/health IHTTP/1.0\r\nHost: e\r\n\r\n${inner}`],
  ["http in small letters", `GET /v1/health http/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a byte after the version", `GET /v1/health HTTP/1.1x\r\nHost: e\r\n\r\n${inner}`],
  ["two spaces before the version", `GET /v1/health  HTTP/1.1 \r\nHost: e\r\n\r\n${inner}`],
  ["a tab for a space", `GET\t/v1/health HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["an LF for a space", `GET /v1/health\nHTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a scheme and one slash", `GET https:/v1/health HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a space in the target", `GET /v1/health x HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a NUL in the target", `GET /v1/health\x00 HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a method that does not exist", `G=":<>(e),[T];?" /v1/health HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a method with a letter too many", `GETX /v1/health HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a method in small letters", `get /v1/health HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a target that is none", `GET ! HTTP/1.1\r\nHost: e\r\n\r\n${inner}`],
  ["a NUL for a method", `\x00 / HTTP/............0596.7407.\r\n\r\n${inner}`],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"],
  ["a TLS hello inside TLS", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"],
  ["a PROXY line", `PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n${inner}`],
  // Hosts.
  ["no Host", "GET /v1/health HTTP/1.1\r\n\r\n"],
  ["two Hosts", `${get}Host: other\r\n\r\n${inner}`],
  ["two Hosts that agree", `${get}Host: e\r\n\r\n${inner}`],
  ["a Host with high bytes", `GET /v1/health HTTP/1.1\r\nHost: \xffa\xff\r\n\r\n${inner}`],
  ["a Host with a NUL", `GET /v1/health HTTP/1.1\r\nHost: a\x00.b\r\n\r\n${inner}`],
  ["a Host with a space", `GET /v1/health HTTP/1.1\r\nHost: a b\r\n\r\n${inner}`],
  ["a Host with an at sign", `GET /v1/health HTTP/1.1\r\nHost: a@b\r\n\r\n${inner}`],
  ["Hosts in a list", `GET /v1/health HTTP/1.1\r\nHost: a, b\r\n\r\n${inner}`],
  // Bodies where none belongs, and fields that would strip others.
  ["the body of a GET", `${get}Content-Length: ${inner.length}\r\n\r\n${inner}`],
  ["the chunks of a GET", `${get}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
  [
    "the body of a DELETE",
    `DELETE /v1/executions/a HTTP/1.1\r\nHost: e\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
  ],
  [
    "Connection that strips the pin",
    `${post}Connection: X-Celln-Backend\r\nX-Celln-Backend: http://10.0.0.1:1\r\n\r\n${inner}`,
  ],
  [
    "Connection that strips the length",
    `${post}Connection: close, content-length\r\nContent-Length: 1\r\n\r\nZ${inner}`,
  ],
  [
    "Connection that strips the bearer",
    `${post}Connection: Authorization\r\nAuthorization: Bearer x\r\n\r\n${inner}`,
  ],
];

/** A head that is in order, and a body that is not: 413 as the original says, nothing asked of the backend. */
const brokenBody: Row[] = [
  ["a chunk size with 0x", `${chunked}0x1\r\nZ\r\n0\r\n\r\n${inner}`],
  ["a chunk size with an underscore", `${chunked}0_2e\r\n\r\n${inner}0\r\n\r\n`],
  ["a chunk size with a plus", `${chunked}+1\r\nZ\r\n0\r\n\r\n${inner}`],
  ["a chunk size with a minus", `${chunked}-0x0\r\n\r\n${inner}`],
  ["a space before a chunk size", `${chunked}   0\r\n\r\n${inner}`],
  ["a space after a chunk size", `${chunked}1 \r\nZ\r\n0\r\n\r\n${inner}`],
  ["an empty chunk size", `${chunked}\r\n\r\n${inner}`],
  ["letters for a chunk size", `${chunked}Z\r\nZZ\r\nZZZ\r\n\r\n${inner}`],
  ["a chunk size with bytes after it", `${chunked}1these-are-not-looked-at\r\nZ\r\n0\r\n\r\n${inner}`],
  ["words for a chunk size", `${chunked}INVALID!!!\r\n${inner}`],
  ["a chunk size past 64 bits", `${chunked}10000000000000001\r\nZ\r\n0\r\n\r\n${inner}`],
  ["a chunk size with a NUL", `${chunked}1\x00\r\nZ\r\n0\r\n\r\n${inner}`],
  ["a bare LF after a chunk size", `${chunked}1\nZ\r\n0\r\n\r\n${inner}`],
  ["a bare LF after a chunk", `${chunked}a\r\n0123456789\n0\r\n\r\n${inner}`],
  ["a bare CR after a chunk size", `${chunked}1\rZ\r\n0\r\n\r\n${inner}`],
  ["a bare CR after a chunk", `${chunked}1\r\nZ\rX0\r\n\r\n${inner}`],
  ["a chunk longer than it says", `${chunked}1\r\nZZ\r\n0\r\n\r\n${inner}`],
  ["a CR before an extension", `${chunked}5\r\r;ABCD\r\n34\r\nE\r\n0\r\n\r\n${inner}`],
  ["CRs in an extension", `${chunked}41;a=b\r\rXXXX\r\n0\r\n\r\n${inner}`],
  ["an LF in an extension", `${chunked}1;a\nZ\r\n0\r\n\r\n${inner}`],
  ["an LF in a quoted extension", `${chunked}1;a="\n"\r\nZ\r\n0\r\n\r\n${inner}`],
  ["an LF for the end of an extension", `${chunked}1;\nZ\r\n0\r\n\r\n${inner}`],
  ["a NUL in an extension", `${chunked}1;a\x00\r\nZ\r\n0\r\n\r\n${inner}`],
  ["an extension without a semicolon", `${chunked}2 erfrfer\r\naa\r\n0 rrrr\r\n\r\n${inner}`],
  ["a semicolon without an extension", `${chunked}2;\r\naa\r\n0\r\n\r\n${inner}`],
  ["an extension whose quotes never close", `${chunked}5;a="b";c="d; e\r\nhello\r\n0\r\n\r\n${inner}`],
  ["an extension of 20 KB", `${chunked}1;${"a".repeat(20_000)}\r\nZ\r\n0\r\n\r\n${inner}`],
  ["a request where the last line should be", `${chunked}0\r\nGET /v1/health HTTP/1.1\r\n\r\n${inner}`],
  ["a trailer with a bare LF", `${chunked}0\r\nX: y\n\r\n${inner}`],
  ["a trailer with a space before the colon", `${chunked}0\r\nX : y\r\n\r\n${inner}`],
  ["a bare LF after the last chunk", `${chunked}0\n\n${inner}`],
  ["a length in a trailer", `${chunked}1\r\nZ\r\n0\r\nContent-Length: 5\r\n\r\n${inner}`],
  ["an extra line before the last chunk", `${chunked}1\r\nZ\r\n\r\n0\r\n\r\n${inner}`],
];

/** A head in order whose target, method or fields no mode lets through. */
const noRoute: (Row & { 2?: "keeps" })[] = [
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
  ...brokenBody.map(([name, bytes]) => ({ name, bytes, statuses: [413] })),
  ...noRoute.map(([name, bytes, keeps]) => ({ name, bytes, statuses: [404], keeps: keeps === "keeps" })),
  ...clear,
];
