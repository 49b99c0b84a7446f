// A router in a process of its own: `router-process.ts ORIGIN`. It answers `memory` with the bytes that it holds after a collection.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPosixLedger } from "@cellkit/ledger";
import { createBackendList, createCredentialFiles, createRouter } from "../../src/index.ts";

const directory = mkdtempSync(join(tmpdir(), "cellkit-bench-router-"));
const write = (role: string) => {
  const path = join(directory, role);
  writeFileSync(path, `bench-${role}-bench-bench-bench-bench`, { mode: 0o600 });
  return path;
};
const ledger = await openPosixLedger({ directory: join(directory, "ledger") });
const router = createRouter({
  ledger,
  backends: createBackendList({ origins: [process.argv[2] ?? ""] }),
  tokens: createCredentialFiles({
    client: write("client"),
    backend: write("backend"),
    capability: write("capability"),
  }),
  limits: { runningCount: 4_096 },
});
const { port } = await router.listen({ host: "127.0.0.1", port: 0 });
process.send?.(port);
process.on("message", () => {
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  process.send?.({ rss, heap: heapUsed + external, cpu: process.cpuUsage(), ...router.counts() });
});
process.once("disconnect", () => {
  rmSync(directory, { recursive: true });
  process.exit();
});
