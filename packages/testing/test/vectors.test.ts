import { RouterClient } from "@cellkit/execution";
import { request as undiciRequest } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { dispatcher } from "../src/index.ts";
import { mockedNetwork, routerHandlers } from "../src/msw/index.ts";
import { call } from "./support/call.ts";
import { tokenFile } from "./support/directory.ts";
import { ownAnswers, vectors } from "./support/vectors.ts";

describe("a mocked router answers as the vectors say", () => {
  /** It says it is longer than it is, which no HTTP client would send. */
  const unsendable = "submit: declared length above 64 KiB";

  it("and they are there", () => {
    expect(ownAnswers).toHaveLength(19);
    expect(ownAnswers.map(({ name }) => name)).toContain(unsendable);
  });

  it.each(
    ownAnswers.filter(({ name }) => name !== unsendable).map((vector) => [vector.name, vector] as const),
  )("%s", async (_name, { backends, request, expect: expected }) => {
    const url = "http://router.test:8787";
    const router = routerHandlers({
      url,
      token: vectors.tokens.client,
      capabilityToken: vectors.tokens.capability,
      backends: backends.map((origin) => ({ origin })),
    });
    const network = mockedNetwork(router.handlers);
    onTestFinished(() => network.close());
    const { statusCode, body } = await undiciRequest(`${url}${request.path}`, {
      method: request.method,
      headers: Object.fromEntries(request.headers),
      body: request.body === "" ? null : request.body,
    });
    expect([statusCode, await body.json()]).toEqual([expected.status, expected.json]);
    expect(router.runs.size).toBe(0);
  });
});

describe("a dispatcher finds the problems of the vectors, and runs what has none", () => {
  it.each(vectors.requestValidation.map((vector) => [vector.name, vector] as const))(
    "%s",
    async (_name, { request, problems }) => {
      await using it = await dispatcher();
      const text = JSON.stringify(request);
      if (problems.length > 0) {
        const { status, body } = await call(it.origin, "POST", "/v1/executions", text);
        expect(status).toBe(400);
        expect((body as { problems?: unknown }).problems).toEqual(
          problems.map((problem) => expect.objectContaining(problem)),
        );
        expect(it.runs.size).toBe(0);
        return;
      }
      const client = new RouterClient({ url: it.origin, tokenFile: await tokenFile(), pollMinMs: 1 });
      const submission = await client.submit(text);
      expect(await submission.result()).toMatchObject({ phase: "Succeeded", output: "ok" });
      expect(it.runs).toEqual(new Map([[request.id, 1]]));
    },
  );
});
