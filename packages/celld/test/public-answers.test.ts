import { expect, test } from "vitest";
import { answerPublicly } from "../src/public-answers.ts";

const starting = { draining: false, engine: undefined };

test.each([
  "/__celld/health",
  "/__celld/health?a=/b",
  "http://h/__celld/health",
  "HTTPS://user@h:8080/__celld/health?x",
  "http:///__celld/health",
])("celld answers its health itself: %s", (target) => {
  expect(answerPublicly({ method: "GET", target }, starting)?.body).toBe('{"ok":false}');
});

test.each([
  "/__celld/healthy",
  "/__celld/health/",
  "/x?y=/__celld/health",
  "/http://h/__celld/health",
  "ftp://h/__celld/health",
  "http://h/x/__celld/health",
  "http://h?/__celld/health",
  "*",
])("what is not its health's path is the Worker's: %s", (target) => {
  expect(answerPublicly({ method: "GET", target }, starting)).toBeUndefined();
});
