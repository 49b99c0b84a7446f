// Who gets as far as HTTP: TLS 1.3, HTTP/1.1, a CA that is known, and where it is asked for, a certificate of the client's own.
import { request } from "undici";
import { describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { TestCa } from "./support/certificates.ts";
import { pairOf, requestBytes, TestEdge } from "./support/edge.ts";

const health = requestBytes("GET /v1/health");

it("TLS 1.3 is spoken, and HTTP/1.1 alone", async () => {
  await using edge = await TestEdge.open();
  using client = await edge.client({ ALPNProtocols: ["h2", "http/1.1"] });
  expect([client.socket.getProtocol(), client.socket.alpnProtocol]).toEqual(["TLSv1.3", "http/1.1"]);
  await expect(edge.client({ ALPNProtocols: ["h2"] })).rejects.toMatchObject({
    code: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
  });
});

it.each(["TLSv1.2", "TLSv1.1"] as const)(
  "%s is refused, before and after a new certificate",
  async (version) => {
    await using edge = await TestEdge.open();
    const dial = () =>
      edge.client({ minVersion: "TLSv1", maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" });
    await expect(dial()).rejects.toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" });
    edge.listener.useCertificate(pairOf(edge.ca.issue()));
    await expect(dial()).rejects.toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" });
    await until("two failures counted", () => edge.listener.counts.handshakeFailures === 2);
  },
);

it("a client without the CA, or with another one of the same name, fails", async () => {
  await using edge = await TestEdge.open();
  await expect(edge.client({ ca: [] })).rejects.toMatchObject({
    code: /SELF_SIGNED|UNABLE_TO|LEAF_SIGNATURE/,
  });
  await expect(edge.client({ ca: new TestCa().cert })).rejects.toMatchObject({
    code: expect.stringMatching(/SELF_SIGNED|UNABLE_TO|SIGNATURE/),
  });
  expect(edge.backend.connections.ever).toBe(0);
});

it("plain HTTP gets no answer", async () => {
  await using edge = await TestEdge.open();
  await expect(request(`http://127.0.0.1:${edge.port}/v1/health`)).rejects.toMatchObject({
    code: expect.stringMatching(/UND_ERR_SOCKET|ECONNRESET|HPE_/),
  });
});

it("connections that are open keep their certificate, later ones get the other", async () => {
  await using edge = await TestEdge.open();
  using early = await edge.client();
  const next = edge.ca.issue({ name: "the next" });
  edge.listener.useCertificate(pairOf(next));
  using late = await edge.client();
  expect(early.socket.getPeerCertificate().subject.CN).toBe("edge");
  expect(late.socket.getPeerCertificate().subject.CN).toBe("the next");
  for (const client of [early, late]) expect((await client.send(health).answers())[0]?.status).toBe(200);
});

it("a ticket of the certificate before is worth nothing: the handshake is done anew", async () => {
  await using edge = await TestEdge.open();
  const early = await edge.client();
  const ticket = new Promise<Buffer>((resolve) => early.socket.once("session", resolve));
  await early.send(health).answers();
  const session = await ticket;
  using again = await edge.client({ session });
  expect(again.socket.isSessionReused()).toBe(true);
  edge.listener.useCertificate(pairOf(edge.ca.issue()));
  using late = await edge.client({ session });
  expect(late.socket.isSessionReused()).toBe(false);
  expect((await late.send(health).answers())[0]?.status).toBe(200);
  early[Symbol.dispose]();
});

describe("with a CA for clients", () => {
  it("a client with its certificate is served", async () => {
    const clientCa = new TestCa("clients");
    await using edge = await TestEdge.open({ clientCa });
    using client = await edge.client(clientCa.issue({ name: "controller" }));
    expect((await client.send(health).answers())[0]?.status).toBe(200);
  });

  it("another CA counts for the connections to come, and the one before no more", async () => {
    const [before, after] = [new TestCa("clients"), new TestCa("clients")];
    await using edge = await TestEdge.open({ clientCa: before });
    edge.listener.useCertificate(pairOf(edge.ca.issue(), after));
    using client = await edge.client(after.issue());
    expect((await client.send(health).answers())[0]?.status).toBe(200);
    for (const given of [before.issue(), undefined]) {
      using refused = await edge.client(given);
      expect(await refused.send(health).closed()).toEqual([]);
    }
    expect(edge.backend.requests).toHaveLength(1);
  });

  it.each([
    ["without one", undefined],
    ["with one of another CA", new TestCa("clients").issue()],
    ["with one that has expired", "expired"],
  ] as const)("a client %s is not", async (_, given) => {
    const clientCa = new TestCa("clients");
    await using edge = await TestEdge.open({ clientCa });
    const pair = given === "expired" ? clientCa.issue({ validToMs: Date.now() - 1_000 }) : given;
    // With TLS 1.3 a client has its end of the handshake before it is refused.
    using client = await edge.client(pair);
    client.send(health);
    expect(await client.closed()).toEqual([]);
    expect(edge.backend.connections.ever).toBe(0);
  });
});
