// Bytes of submissions that a dispatcher takes.

/** A request of an agent, as its exact bytes. */
export function executionBytes(id: string): Buffer {
  return Buffer.from(
    JSON.stringify({
      apiVersion: "celln.dev/v1alpha1",
      id,
      workload: { id: "test", caller: "router-test" },
      forge: { task: "Print the first ten prime numbers." },
      capabilities: { workspace: "none", timeoutMs: 60_000, memoryBytes: 1_048_576, outputBytes: 1_024 },
      execution: { lane: "agent", requireHardwareIsolation: false },
    }),
  );
}

/** A call of the API as its bytes. */
export function callBytes(line: string, token: string, body?: Uint8Array): Buffer {
  const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
  const head = Buffer.from(
    `${line} HTTP/1.1\r\nHost: router\r\nAuthorization: Bearer ${token}\r\n${length}\r\n`,
  );
  return body === undefined ? head : Buffer.concat([head, body]);
}
