// An edge in this process, in front of a recording backend, with a log that tests can read.
import { randomUUID } from "node:crypto";
import type { ConnectionOptions } from "node:tls";
import { type CertificatePair, createLogger } from "@cellkit/daemon";
import type { BackendOrigin } from "../../src/core/backend-origin.ts";
import { EdgeListener, type EdgeListenerOptions } from "../../src/edge-listener.ts";
import type { EdgeLimits } from "../../src/limits.ts";
import { TestCa, type TestPair } from "./certificates.ts";
import { type Answer, RawBackend } from "./raw-backend.ts";
import { TlsClient } from "./tls-client.ts";

/** What a test may choose. */
export interface TestEdgeOptions extends Partial<Pick<EdgeListenerOptions, "mode" | "ids" | "limits">> {
  answer?: Answer;
  /** A CA whose clients alone are served. */
  clientCa?: TestCa;
  /** Where requests go instead of to {@link TestEdge.backend}. */
  origin?: BackendOrigin;
}

/** Bounds that no test means, so long that a machine which stops a process for seconds meets none of them. */
const patient: Partial<EdgeLimits> = {
  handshakeTimeoutMs: 60_000,
  headTimeoutMs: 60_000,
  requestTimeoutMs: 60_000,
  halfClosedMs: 60_000,
  dialTimeoutMs: 60_000,
};

/** An edge, its backend, its CA. */
export class TestEdge {
  readonly backend: RawBackend;
  readonly listener: EdgeListener;
  readonly ca: TestCa;
  readonly log: string[];
  port = 0;

  private constructor(backend: RawBackend, listener: EdgeListener, ca: TestCa, log: string[]) {
    this.backend = backend;
    this.listener = listener;
    this.ca = ca;
    this.log = log;
  }

  static async open(options: TestEdgeOptions = {}): Promise<TestEdge> {
    const { answer, clientCa, origin, limits, ...rest } = options;
    const backend = await RawBackend.open(answer);
    const ca = new TestCa();
    const log: string[] = [];
    const listener = new EdgeListener({
      mode: "execution",
      ...rest,
      limits: { ...patient, ...limits },
      backend: origin ?? backend.origin,
      certificate: pairOf(ca.issue(), clientCa),
      log: createLogger({
        name: "edge",
        level: "debug",
        format: "json",
        stream: { write: (line) => void log.push(line) },
      }),
    });
    const edge = new TestEdge(backend, listener, ca, log);
    edge.port = (await listener.listen({ host: "127.0.0.1", port: 0 })).port;
    return edge;
  }

  client(options: ConnectionOptions = {}): Promise<TlsClient> {
    return TlsClient.dial(this.port, { ca: this.ca.cert, ...options });
  }

  async close(): Promise<void> {
    await this.listener.close(AbortSignal.abort());
    await this.backend.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** What the listener wants of a pair, without its dates. */
export function pairOf({ cert, key }: TestPair, clientCa?: TestCa): CertificatePair {
  return {
    cert: Buffer.from(cert),
    key: Buffer.from(key),
    clientCa: clientCa === undefined ? undefined : Buffer.from(clientCa.cert),
    validFromMs: 0,
    validToMs: Number.MAX_SAFE_INTEGER,
    names: undefined,
    fingerprint: "",
  };
}

/** A bearer that no log may hold. */
export const bearer = `edge-test-${randomUUID()}`;

/** A request's bytes: a line, `Host`, fields, and a body with its length. */
export function requestBytes(line: string, fields: readonly string[] = [], body?: string): string {
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
  return [`${line} HTTP/1.1`, "Host: edge.example", ...fields, ...length, "", body ?? ""].join("\r\n");
}
