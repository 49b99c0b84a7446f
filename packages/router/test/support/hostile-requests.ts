// Requests that something may read in another way than was meant, or that nobody means well with. All are made for this suite; texts are
// bytes, one character each. What must come of each is the specification's word (execution API, sections 2 to 6).
import { type Refusal, refusals } from "../../src/core/answer.ts";

/** What must come of one: a refusal, or an end without a word. */
type Outcome = Refusal | "silent";

/** One of them. */
export interface HostileRequest {
  readonly name: string;
  readonly bytes: string;
  readonly outcome: Outcome;
}

/** The tokens that they are made with. */
export interface HostileTokens {
  readonly client: string;
  readonly backend: string;
  readonly capability: string;
}

/** The answer's status and text for a refusal. */
export const answerOf = (refusal: Refusal): readonly [number, string] => refusals[refusal];

function named(group: string, outcome: Outcome, requests: readonly string[]): HostileRequest[] {
  return requests.map((bytes, index) => ({
    name: `${group} ${index + 1}: ${JSON.stringify(bytes.slice(0, 60))}`,
    bytes,
    outcome,
  }));
}

/** Without a token: heads are judged before anybody is asked who they are. */
function brokenHeads(): HostileRequest[] {
  const get = "GET /v1/capabilities HTTP/1.1\r\n";
  const post = "POST /v1/executions HTTP/1.1\r\n";
  const lengths = [
    ...[
      "",
      " ",
      "+1",
      "-1",
      "-0",
      "1 1",
      "0x10",
      "1e3",
      "1.0",
      "1,1",
      "1, 1",
      "1;1",
      '"1"',
      "'1'",
      "one",
      "1_000",
    ],
    ...[
      "18446744073709551616",
      "99999999999999999999999999",
      "\xef\xbc\x91",
      "\xd9\xa3",
      "1\x00",
      "\x001",
      "1\x7f",
      "0b1",
      "1h",
    ],
    ...["Infinity", "NaN", "null", "1\\n", "١", "1=1", "()", "1%00", "--1", "1-"].map((text) =>
      Buffer.from(text).toString("latin1"),
    ),
  ];
  const encodings = [
    ...[
      "chunked",
      "Chunked",
      "identity",
      "",
      "x",
      "gzip, chunked",
      "chunked, identity",
      "chunked;q=1",
      "\x0bchunked",
    ],
    ...['"chunked"', "chunked\x00", "xchunked", "chunked chunked", "compress", "\tchunked"],
  ];
  const twice = (one: string, other: string) => `${get}${one}\r\n${other}\r\n\r\n`;
  return [
    ...named("a first line without a space", "malformed-line", [
      ...[
        "\r\n",
        "\n",
        "GET\r\n\r\n",
        "GET\t/v1/capabilities\tHTTP/1.1\r\n\r\n",
        "\x00\r\n",
        "HTTP/1.1\r\n\r\n",
      ],
      ...[
        "\xff\xfe\r\n",
        "/v1/capabilities\n\n",
        "{}\r\n\r\n",
        `${"a".repeat(8_000)}\n`,
        "\x16\x03\x01\x02\n",
        "\x80\n",
      ],
    ]),
    ...named("a first line that is too long", "silent", [
      `GET /${"a".repeat(8_200)} HTTP/1.1\r\n\r\n`,
      "a".repeat(8_192),
      `GET /${"\xe9".repeat(4_100)} HTTP/1.1\r\n\r\n`,
      " ".repeat(8_192),
      "\x00".repeat(9_000),
    ]),
    ...named("a header line that is too long", "silent", [
      `${get}X: ${"a".repeat(8_190)}\r\n\r\n`,
      `${get}${"a".repeat(8_200)}: x\r\n\r\n`,
      `${get}X: ${"\xff".repeat(4_096)}\r\n\r\n`,
      `${get}X:${" ".repeat(8_190)}\r\n\r\n`,
    ]),
    ...named("too many headers", "silent", [
      `${get}${"A: b\r\n".repeat(65)}\r\n`,
      `${get}${":\n".repeat(65)}\n`,
      `${get}${"Authorization : x\r\n".repeat(70)}\r\n`,
    ]),
    ...named("no end of the head", "silent", [
      "GET",
      "GET /v1/capabilities HTTP/1.1",
      get,
      `${get}Authorization: Bearer`,
      `${get}A: b\r\n`,
      "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
      "PRI",
    ]),
    ...named("a header line without a colon", "invalid-header", [
      `${get}Authorization\r\n\r\n`,
      `${get}A: b\r\n folded\r\n\r\n`,
      `${get}A: b\r\n\tfolded\r\n\r\n`,
      `${get}\x00\r\n\r\n`,
      `${get}Content-Length 5\r\n\r\n`,
      `${get}Transfer-Encoding\r\nchunked\r\n\r\n`,
      `${get}Host; x\n\n`,
      `${get}\xff\r\n\r\n`,
    ]),
    ...named(
      "a length",
      "invalid-length",
      lengths.map((value) => `${post}Content-Length:${value}\r\n\r\n`),
    ),
    ...named("two lengths", "invalid-length", [
      ...[
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\ncontent-length: 2",
        "content-length:0\nCONTENT-LENGTH:0",
      ].map((lines) => `${post}${lines}\r\n\r\n`),
    ]),
    ...named("a transfer encoding", "transfer-encoding", [
      ...encodings.map((value) => `${post}Transfer-Encoding: ${value}\r\n\r\n0\r\n\r\n`),
      `${post}transfer-encoding:chunked\r\n\r\n`,
      `${post}TRANSFER-ENCODING: identity\n\n`,
      `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
    ]),
    ...named("two of a kind", "duplicate-authorization", [
      twice("Authorization: a", "Authorization: a"),
      twice("Authorization: a", "authorization: b"),
      twice("AUTHORIZATION:", "authorization:"),
    ]),
    ...named("two of a kind", "duplicate-pin", [
      twice("X-Celln-Backend: a", "x-celln-backend: a"),
      twice("x-celln-backend:", "X-CELLN-BACKEND:"),
    ]),
    ...named("two of a kind", "duplicate-parent", [
      twice("X-Celln-Parent-Incarnation: a", "x-celln-parent-incarnation: b"),
    ]),
    ...named("a preference", "invalid-preference", [
      ...[
        "",
        "wait=5",
        "respond-async, wait=5",
        "Respond-Async",
        "respond-async;q=1",
        "respond-async\x00",
      ].map((value) => `${get}Prefer: ${value}\r\n\r\n`),
      twice("Prefer: respond-async", "prefer: respond-async"),
    ]),
  ];
}

function strangers({ client, backend, capability }: HostileTokens): HostileRequest[] {
  const with_ = (value: string, line = "GET /v1/capabilities") =>
    `${line} HTTP/1.1\r\nAuthorization: ${value}\r\n\r\n`;
  return named(
    "a credential",
    "unauthorized",
    [
      "GET /v1/capabilities HTTP/1.1\r\n\r\n",
      ...[
        "",
        "Bearer",
        "Bearer ",
        `Bearer  ${client}`,
        `Bearer\t${client}`,
        `Basic ${client}`,
        client,
        `Bearer ${client}x`,
      ],
      ...[
        `Bearer ${client.slice(0, -1)}`,
        `Bearer "${client}"`,
        `Bearer ${client.toUpperCase()}`,
        `Bearer ${client} ${client}`,
      ],
      ...[
        `Bearer ${client},`,
        `Bearer ${client}\x00`,
        `Bearer ${backend}`,
        `Bearer ${client},Bearer ${client}`,
        `Bearer=${client}`,
      ],
      ...[
        `Bearer ${encodeURIComponent(client)}%00`,
        `Token ${client}`,
        `Bearer:${client}`,
        `Bearer ${"x".repeat(4_097)}`,
        "Bearer null",
      ],
    ].map((value) => (value.startsWith("GET") ? value : with_(value))),
  ).concat(
    named(
      "the discovery token elsewhere",
      "unauthorized",
      [
        ...[
          "GET /v1/executions/a",
          "POST /v1/executions",
          "POST /v1/executions/a/cancel",
          "POST /v1/capabilities",
          "GET /v1/capabilities?",
        ],
        ...[
          "HEAD /v1/capabilities",
          "GET /v1/capabilities/",
          "GET /V1/capabilities",
          "get /v1/capabilities",
          "GET /v1/parents",
        ],
      ].map((line) => with_(`Bearer ${capability}`, line)),
    ),
    named(
      "a name that is not Authorization",
      "unauthorized",
      [
        ...[
          "Authorization ",
          "X-Authorization",
          "Proxy-Authorization",
          " Authorization",
          "Authorization\t",
          "Authori\x00zation",
          "Authorization\x00",
        ],
      ].map((name) => `GET /v1/capabilities HTTP/1.1\r\n${name}: Bearer ${client}\r\n\r\n`),
    ),
    named("another protocol", "unauthorized", [
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\n\r\n",
      "CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n",
      "GET http://169.254.169.254/latest HTTP/1.1\r\n\r\n",
      "EHLO x\r\n\r\n",
      "GET /v1/executions/a\r\n\r\n",
    ]),
  );
}

function wrongCalls({ client }: HostileTokens): HostileRequest[] {
  const call = (line: string, body?: string, fields = "") => {
    const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
    return `${line} HTTP/1.1\r\nAuthorization: Bearer ${client}\r\n${fields}${length}\r\n${body ?? ""}`;
  };
  const submit = (body: string, fields?: string) => call("POST /v1/executions", body, fields);
  const deep = (levels: number) => `{"id":"a","x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
  const paths = [
    ...[
      "/",
      "*",
      "/v1",
      "/v1/",
      "/v1/executions",
      "/v1/executions/",
      "/v1/executions/.",
      "/v1/executions/..",
      "/v1/executions/../audit",
    ],
    ...[
      "/v1/executions/a?x=1",
      "/v1/executions/a?",
      "/v1/executions/a#b",
      "/v1/executions/a;b",
      "/v1/executions/a/",
      "/v1/executions//a",
    ],
    ...[
      "/v1/executions/a%2fb",
      "/v1/executions/%61",
      "/v1/executions/a\\b",
      "/v1/executions/a:b",
      "/v1/executions/a,b",
      "/v1//executions/a",
    ],
    ...[
      "//v1/executions/a",
      "/v1/./executions/a",
      "/V1/executions/a",
      "/v1/Executions/a",
      "/v1/executions/a/audit/",
      "/v1/executions/a/cancel",
    ],
    ...[
      "/v1/executions/a/other",
      "/v1/executions/\xe9",
      "/v1/executions/a\x00",
      `/v1/executions/${"a".repeat(513)}`,
      "http://x/v1/executions/a",
    ],
    ...[
      "/v1/health",
      "/v1/node",
      "/v1/drain",
      "/v1/cells",
      "/v1/cells?all=true",
      "/v1/actions",
      "/v1/artifacts/prewarm",
      "/v1/capabilities?x",
    ],
    ...[
      "/v1/capabilities/",
      "/v1/scoped",
      "/v1/parentsx",
      "/metrics",
      "/health",
      "/v1/executions/a/audit?x",
      "/.well-known/x",
      "/v1/executions/%2e%2e",
    ],
  ];
  const methods = [
    "HEAD",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "get",
    "Get",
    "GET\x00",
    "POST",
    "",
    "BREW",
  ];
  return [
    ...named(
      "a path",
      "not-found",
      paths.map((path) => call(`GET ${path}`)),
    ),
    ...named(
      "a method",
      "not-found",
      methods.map((method) => call(`${method} /v1/executions/a`)),
    ),
    ...named(
      "a method",
      "not-found",
      ["GET", "PUT", "DELETE"].map((method) => call(`${method} /v1/executions/a/cancel`)),
    ),
    ...named(
      "a parent",
      "no-parents",
      ["GET /v1/parents", "POST /v1/parents/x", "DELETE /v1/parents/"].map((line) => call(line)),
    ),
    ...named(
      "a scoped call",
      "scoped-disabled",
      ["GET /v1/scoped/", "POST /v1/scoped/prepare", "PUT /v1/scoped/../x"].map(
        (line) => `${line} HTTP/1.1\r\n\r\n`,
      ),
    ),
    ...named("an unknown id", "unknown-execution", [
      call("GET /v1/executions/none"),
      call("GET /v1/executions/none/audit"),
      call("POST /v1/executions/none/cancel"),
      call(`GET /v1/executions/${"a".repeat(512)}`),
      // What follows the one request of a connection is never read.
      `${call("GET /v1/executions/none")}${submit('{"id":"smuggled-1"}')}`,
      `${call("GET /v1/executions/none", '{"id":"smuggled-2"}')}${submit('{"id":"smuggled-3"}')}`,
      call("GET /v1/executions/none", undefined, "Transfer-Encoding : chunked\r\n"),
      call("GET /v1/executions/none", undefined, "Expect: 100-continue\r\n"),
      call("GET /v1/executions/none", undefined, "Upgrade: websocket\r\nConnection: Upgrade\r\n"),
      call("GET /v1/executions/none", undefined, "X-HTTP-Method-Override: POST\r\n"),
      // What stands where the version is counts for nothing.
      call("GET /v1/executions/none b/audit"),
      call("GET /v1/executions/none").replaceAll("\r\n", "\n"),
      call("GET /v1/executions/none").replace("HTTP/1.1", "HTTP/9.9"),
      call("GET /v1/executions/none").replace(" HTTP/1.1", ""),
    ]),
    ...named("a cancel with a body", "cancel-body", [
      call("POST /v1/executions/a/cancel", "{}"),
      call("POST /v1/executions/a/cancel", " "),
    ]),
    ...named("a size", "body-size", [
      call("POST /v1/executions"),
      submit(""),
      call("POST /v1/executions", undefined, "Content-Length: 65537\r\n"),
      call("POST /v1/executions", undefined, "Content-Length: 18446744073709551615\r\n"),
      call("POST /v1/executions", undefined, `Content-Length: ${"0".repeat(400)}65537\r\n`),
      submit("x".repeat(70_000)),
    ]),
    ...named("a pin", "unknown-pin", [
      ...[
        "http://169.254.169.254",
        "http://127.0.0.1:1",
        "",
        "x".repeat(1_025),
        "https://a",
        "http://a,http://b",
      ].map((pin) => submit('{"id":"pinned"}', `X-Celln-Backend: ${pin}\r\n`)),
    ]),
    ...named("a prewarm without a pin", "pin-required", [
      call("POST /v1/artifacts/prewarm", "{}"),
      call("POST /v1/artifacts/prewarm"),
    ]),
    ...named("a body that ends early", "silent", [
      submit("{}").slice(0, -1),
      call("POST /v1/executions", undefined, "Content-Length: 10\r\n"),
    ]),
    ...named(
      "a body",
      "invalid-id",
      [
        ...[
          "{",
          "}",
          "[]",
          "null",
          "0",
          '"id"',
          "true",
          " ",
          "\x00",
          "{}",
          '{"id":1}',
          '{"id":null}',
          '{"id":[]}',
          '{"id":{}}',
          '{"id":true}',
          '{"id":""}',
        ],
        ...[
          '{"id":"."}',
          '{"id":".."}',
          '{"id":"a/b"}',
          '{"id":"a b"}',
          '{"id":"a:b"}',
          '{"id":"a\\u0000"}',
          '{"id":"\\u002e\\u002e"}',
          '{"id":"é"}',
          `{"id":"${"a".repeat(513)}"}`,
        ],
        ...[
          '{"ID":"a"}',
          '{"Id":"a"}',
          '{" id":"a"}',
          '{"x":{"id":"a"}}',
          '[{"id":"a"}]',
          '{"id":"a"}x',
          '{"id":"a"}{"id":"a"}',
          '{"id":"a",}',
          "{'id':'a'}",
          "{id:'a'}",
        ],
        ...[
          '{"id":"a","id":1}',
          '{"id":"a","id":".."}',
          '\xef\xbb\xbf{"id":"a"}',
          '{"id":"a","x":"\xff"}',
          '{"id":"a","x":"\xc0\xaf"}',
          '{"id":"a","x":"\xed\xa0\x80"}',
        ],
        ...[
          '{"id":"a","x":"\\ud800"}',
          '{"id":"a","x":"\\udc00\\ud800"}',
          '{"\\ud800":1,"id":"a"}',
          '{"id":"a","x":1e999}',
          '{"id":"a","x":-1e999}',
          '{"id":"a","x":01}',
          '{"id":"a","x":+1}',
        ],
        ...[
          '{"id":"a","x":NaN}',
          '{"id":"a","x":.5}',
          '{"id":"a"/**/}',
          '{"id":"a"}\x00',
          '{"id":"a\n"}',
          '{"id":"a","x":"\t"}',
          deep(128),
          deep(5_000),
          "[".repeat(60_000),
          '{"id":"a","x":0x1}',
        ],
        ...["\xfe\xff\x00{", "id=a", "<id>a</id>", "0\r\n\r\n", `"${"\\".repeat(3_001)}`],
      ].map((body) => submit(body)),
    ),
  ];
}

/** All of them. */
export function hostileRequests(tokens: HostileTokens): HostileRequest[] {
  return [...brokenHeads(), ...strangers(tokens), ...wrongCalls(tokens)];
}
