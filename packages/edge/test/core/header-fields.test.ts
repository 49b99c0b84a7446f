import { expect, it } from "vitest";
import { answeredFields } from "../../src/core/header-fields.ts";

it("an answer keeps its fields but those of the connection it came on", () => {
  expect(
    answeredFields([
      ...["Content-Type", "application/json", "Connection", "close, X-Hop", "Keep-Alive", "timeout=5"],
      ...[
        "Transfer-Encoding",
        "chunked",
        "X-Hop",
        "1",
        "Set-Cookie",
        "a",
        "set-cookie",
        "b",
        "Content-Length",
        "3",
      ],
    ]),
  ).toEqual([
    "Content-Type",
    "application/json",
    "Set-Cookie",
    "a",
    "set-cookie",
    "b",
    "Content-Length",
    "3",
  ]);
});
