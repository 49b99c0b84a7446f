import { Readable } from "node:stream";
import { RouterClient } from "@cellkit/execution";
import { setupServer } from "msw/node";
import { Agent, request as undiciRequest } from "undici";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { dispatcher, exampleRequest, testClientToken } from "../../src/index.ts";
import { mockedNetwork, routerHandlers } from "../../src/msw/index.ts";
import { failureOf } from "../support/call.ts";
import { tokenFile } from "../support/directory.ts";

const url = "http://router.test:8787";

describe("what catches what (measured with msw 3.0.5)", () => {
  const authorization = { authorization: `Bearer ${testClientToken}` };

  it("setupServer catches fetch", async () => {
    const server = setupServer(...routerHandlers({ url }).handlers);
    server.listen();
    onTestFinished(() => server.close());
    expect((await fetch(`${url}/v1/executions/a`, { headers: authorization })).status).toBe(404);
  });

  it("setupServer does not catch undici: the call goes to the network", async () => {
    const closed = "http://127.0.0.1:1";
    const server = setupServer(...routerHandlers({ url: closed }).handlers);
    server.listen();
    onTestFinished(() => server.close());
    const called = undiciRequest(`${closed}/v1/executions/a`, {
      headers: authorization,
      dispatcher: new Agent(),
    });
    expect(await failureOf(called)).toMatchObject({ code: "ECONNREFUSED" });
  });

  it("mockedNetwork catches fetch and undici with an Agent of its own, and fails what no handler answers", async () => {
    const network = mockedNetwork(routerHandlers({ url }).handlers);
    onTestFinished(() => network.close());
    expect((await fetch(`${url}/v1/executions/a`, { headers: authorization })).status).toBe(404);
    const dispatcher = new Agent();
    onTestFinished(() => dispatcher.close());
    const answer = await undiciRequest(`${url}/v1/executions/a`, { headers: authorization, dispatcher });
    expect(answer.statusCode).toBe(404);
    await answer.body.dump();
    await failureOf(undiciRequest("http://elsewhere.test/", { dispatcher }));
  });

  it("a body in chunks is refused, as a router refuses it", async () => {
    using _network = mockedNetwork(routerHandlers({ url }).handlers);
    const answer = await undiciRequest(`${url}/v1/executions`, {
      method: "POST",
      headers: authorization,
      body: Readable.from(["{}"]),
    });
    expect([answer.statusCode, await answer.body.json()]).toEqual([
      400,
      { error: "transfer encoding unsupported" },
    ]);
  });

  it.each(["bypass", "warn"] as const)(
    "%s lets what no handler answers go to the network",
    async (unhandled) => {
      const warn = vi.spyOn(console, "warn").mockReturnValue();
      onTestFinished(() => warn.mockRestore());
      await using real = await dispatcher();
      const network = mockedNetwork(routerHandlers({ url }).handlers, { unhandled });
      onTestFinished(() => network.close());
      const agent = new Agent();
      onTestFinished(() => agent.close());
      const answer = await undiciRequest(`${real.origin}/v1/health`, { dispatcher: agent });
      expect([answer.statusCode, real.calls.length]).toEqual([200, 1]);
      await answer.body.dump();
      expect(warn).toHaveBeenCalledTimes(unhandled === "warn" ? 1 : 0);
    },
  );

  it("a call that no handler answers never reaches the network by default, and a warning says what is missing", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => warn.mockRestore());
    await using real = await dispatcher();
    using _network = mockedNetwork(routerHandlers({ url }).handlers);
    await failureOf(undiciRequest(`${real.origin}/v1/health?secret=1`, { dispatcher: new Agent() }));
    await failureOf(fetch(`${real.origin}/style.css`));
    expect(real.calls).toHaveLength(0);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining(`answers GET ${real.origin}/v1/health: add one for ${real.origin}`)],
      [expect.stringContaining(`answers GET ${real.origin}/style.css: `)],
    ]);
  });

  it("a router that no handler plays is given up at once", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => warn.mockRestore());
    using _network = mockedNetwork(routerHandlers({ url }).handlers);
    const client = new RouterClient({
      url: "http://ruoter.test:8787/plane",
      allowInsecureHttp: true,
      tokenFile: await tokenFile(testClientToken),
      submitTimeoutMs: 30_000,
    });
    const routerText = expect.stringContaining("no handler of mockedNetwork answers");
    const refused = { code: "CELLKIT_EXECUTION_UNEXPECTED_ANSWER", status: 501, routerText };
    expect(await failureOf(client.submit(exampleRequest("a")))).toMatchObject(refused);
    expect(await failureOf(client.get("a"))).toMatchObject(refused);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  it("a closed network catches nothing, and a second close does nothing", async () => {
    const network = mockedNetwork(routerHandlers({ url }).handlers);
    network.close();
    network.close();
    await failureOf(undiciRequest(`${url}/v1/executions/a`, { headers: authorization }));
  });
});
