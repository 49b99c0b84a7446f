// `npm start`: the router before a large and a small dispatcher, and where it sends what. Ends by itself and leaves nothing.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { executionId, RouterClient } from "@cellkit/execution";
import { dispatcher, ranAtMostOnce, testBackendToken } from "@cellkit/testing";
import { startRouter } from "./router.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const directory = await mkdtemp(join(tmpdir(), "cellkit-custom-router-"));
const clientTokenFile = join(directory, "client-token");
const backendTokenFile = join(directory, "backend-token");
await writeFile(clientTokenFile, "client-token-of-this-example", { mode: 0o600 });
await writeFile(backendTokenFile, testBackendToken, { mode: 0o600 });

// Stand-ins for two machines: what they are given runs until they end.
const large = await dispatcher({ run: "hold", node: { name: "large", maxCells: 8 } });
const small = await dispatcher({ run: "hold", node: { name: "small", maxCells: 2 } });
const router = await startRouter({
  ledger: join(directory, "ledger"),
  backends: [small.origin, large.origin],
  clientTokenFile,
  backendTokenFile,
  port: 0,
});
const client = new RouterClient({ url: router.url, tokenFile: clientTokenFile });

try {
  for (let count = 1; count <= 10; count++) {
    const id = executionId("example", String(count));
    await client.submit({
      apiVersion: "celln.dev/v1alpha1",
      id,
      workload: { id: "example", caller: "custom-router" },
      forge: { task: "Print the first ten prime numbers, one per line." },
      capabilities: { workspace: "none", timeoutMs: 90_000, memoryBytes: 1_048_576, outputBytes: 4_096 },
      execution: { lane: "agent", requireHardwareIsolation: true },
    });
    say(`${id} runs on ${large.runs.has(id) ? "large" : "small"}`);
  }
  ranAtMostOnce(large, small);
  say(`large has ${large.runs.size} of 8, small ${small.runs.size} of 2, and none ran twice`);
} finally {
  await router.stop();
  await Promise.all([large.close(), small.close()]);
  await rm(directory, { recursive: true, force: true });
}
