import { testClientToken, tokenFile } from "@cellkit/testing";
import { mockedNetwork, routerHandlers } from "@cellkit/testing/msw";
import { expect, it } from "vitest";
import { nightlyReport } from "./fixtures/nightly-report.ts"; // your code: RouterClient with allowInsecureHttp

it("makes one report a night, although the router lost its dispatcher's answer", async () => {
  const router = routerHandlers({ url: "http://router.test:8787" });
  using _network = mockedNetwork(router.handlers); // from here on msw answers undici, too
  await using file = await tokenFile(testClientToken);
  router.fault("submit", { kind: "outcome-unknown", ran: true }); // 503: it ran, and nobody knows
  expect(await nightlyReport("http://router.test:8787", file.path, "2026-11-30")).toBe("ok");
  expect(router.runs).toEqual(new Map([["report-2026-11-30", 1]])); // and not twice
});
