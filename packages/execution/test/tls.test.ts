import { rename, writeFile } from "node:fs/promises";
import { afterEach, describe, expect, inject, test, vi } from "vitest";
import { heldClock } from "../../../tools/test-support/held-clock.ts";
import { CapabilityClient } from "../src/index.ts";
import { createAuthority, hasOpenssl } from "./support/certificates.ts";
import { failureOf, patient, quickClient, testDirectory, tokenFile } from "./support/client.ts";
import { inOneTry } from "./support/in-one-try.ts";
import { answer, rawRouter } from "./support/raw-router.ts";
import { moteRequest } from "./support/requests.ts";

const running = () => answer(200, { requestId: "run-1", phase: "Running" });
const refusedCertificate = { code: "CELLKIT_EXECUTION_ROUTER_UNTRUSTED", next: "same-id" };

describe.runIf(await hasOpenssl())("over TLS", () => {
  afterEach(() => vi.unstubAllEnvs());

  test("a router is spoken to if its certificate comes from the given authority", async () => {
    const { ca, issue } = await createAuthority();
    await using router = await rawRouter(running, await issue("IP:127.0.0.1"));
    expect(await (await quickClient(router.url, { ca })).get("run-1")).toMatchObject({ phase: "Running" });
  });

  test.each<[string, string, boolean, RegExp]>([
    [
      "an authority that is not known",
      "IP:127.0.0.1",
      false,
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE\).*; give the cert/,
    ],
    [
      "another name",
      "DNS:router.example",
      true,
      /ERR_TLS_CERT_ALTNAME_INVALID\).*; it was issued for other names/,
    ],
  ])(
    "a certificate of %s is refused, whatever the environment says, and nothing is sent",
    async (_, name, known, message) => {
      vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
      const { ca, issue } = await createAuthority();
      await using router = await rawRouter(running, await issue(name));
      const client = await quickClient(router.url, { ca: known ? ca : (await createAuthority()).ca });
      expect(await failureOf(inOneTry((time) => client.submit(moteRequest("run-1"), time)))).toMatchObject({
        sent: "no",
        cause: refusedCertificate,
        message: expect.stringMatching(message),
      });
      expect(await failureOf((await quickClient(router.url)).get("run-1"))).toMatchObject(refusedCertificate);
      expect(router.received).toEqual([]);
    },
  );

  test("the CA file is read for each call", async () => {
    const [first, second] = [await createAuthority(), await createAuthority()];
    await using before = await rawRouter(running, await first.issue("IP:127.0.0.1"));
    await using after = await rawRouter(running, await second.issue("IP:127.0.0.1"));
    const caFile = `${await testDirectory()}/ca.crt`;
    await writeFile(caFile, first.ca);
    const [old, renewed] = [
      await quickClient(before.url, { caFile }),
      await quickClient(after.url, { caFile }),
    ];
    expect(await old.get("run-1")).toMatchObject({ phase: "Running" });
    expect(await failureOf(renewed.get("run-1"))).toMatchObject(refusedCertificate);
    await writeFile(caFile, `both\n${first.ca}\n${second.ca}`);
    expect(await old.get("run-1")).toMatchObject({ phase: "Running" });
    expect(await renewed.get("run-1")).toMatchObject({ phase: "Running" });
  });

  test("a submission waits for a CA file that is being replaced", async () => {
    const [first, second] = [await createAuthority(), await createAuthority()];
    await using router = await rawRouter(
      () => answer(202, { requestId: "run-1", phase: "Admitting" }),
      await second.issue("IP:127.0.0.1"),
    );
    const caFile = `${await testDirectory()}/ca.crt`;
    await writeFile(caFile, first.ca);
    const client = await quickClient(router.url, { caFile });
    // The time that such a file has is not over, however long this takes.
    heldClock();
    const submitted = client.submit(moteRequest("run-1"));
    await expect.poll(() => router.connections(), patient).toBeGreaterThan(1);
    await writeFile(`${caFile}.next`, second.ca);
    await rename(`${caFile}.next`, caFile);
    expect((await submitted).id).toBe("run-1");
    expect(router.received).toHaveLength(1);
  });

  test.runIf(inject("size") === "long")(
    "a certificate that stays untrusted ends every call after 5 s",
    async () => {
      const { issue } = await createAuthority();
      await using router = await rawRouter(running, await issue("IP:127.0.0.1"));
      const client = await quickClient(router.url, { pollMinMs: 100, pollMaxMs: 5_000 });
      const run = client.prepare(moteRequest("run-1"));
      for (const call of [() => run.send(), () => run.result(), () => run.cancelUntilTerminal()]) {
        const startMs = performance.now();
        expect(await failureOf(call())).toMatchObject({ ...refusedCertificate, sent: "no" });
        expect(performance.now() - startMs).toBeGreaterThan(4_900);
      }
      expect(router.received).toEqual([]);
    },
    120_000,
  );

  test("a CA file without a certificate never means the system's authorities", async () => {
    const { issue } = await createAuthority();
    await using router = await rawRouter(running, await issue("IP:127.0.0.1"));
    const caFile = `${await testDirectory()}/ca.crt`;
    for (const content of ["", "nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]) {
      await writeFile(caFile, content);
      const client = await quickClient(router.url, { caFile });
      expect(await failureOf(client.get("run-1"))).toMatchObject({
        code: "CELLKIT_EXECUTION_CA_FILE",
      });
      expect(await failureOf(quickClient(router.url, { ca: content }))).toMatchObject({
        code: "CELLKIT_EXECUTION_OPTION",
      });
      const probe = new CapabilityClient({ url: router.url, tokenFile: await tokenFile(), caFile });
      expect(await probe.probe()).toMatchObject({ state: "unreachable" });
    }
    expect(router.connections()).toBe(0);
  });

  test("a probe refuses a certificate that it cannot verify", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    const { ca, issue } = await createAuthority();
    await using router = await rawRouter(() => answer(404, ""), await issue("IP:127.0.0.1"));
    const options = { url: router.url, tokenFile: await tokenFile() };
    expect(await new CapabilityClient(options).probe()).toMatchObject({
      state: "unreachable",
      cause: expect.stringMatching(/CERT|LEAF|SIGN/),
    });
    expect(router.received).toEqual([]);
    expect(await new CapabilityClient({ ...options, ca }).probe()).toMatchObject({ state: "not_installed" });
  });
});
