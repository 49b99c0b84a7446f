// A router in this process, for tests.
import { openPosixLedger } from "@cellkit/ledger";
import { createBackendList, createCredentialFiles, createRouter } from "../../src/index.ts";
import { patientLimits } from "./router.ts";
import type { RouterUnderTest, VectorPlace } from "./vector-run.ts";

/** Opens a router for a case of the vectors. */
export async function startLocalRouter(place: VectorPlace): Promise<RouterUnderTest> {
  const { capacity } = place;
  // Whoever made the case with a held lock counts on a bounded wait; the bound itself is the ledger's to test.
  const ledger = await openPosixLedger({
    directory: place.ledgerDirectory,
    lockTimeoutMs: place.isLocked ? 200 : 60_000,
    ...(capacity !== undefined && { capacity }),
  });
  const router = createRouter({
    ledger,
    backends:
      place.backends.length === 0
        ? { origins: async () => [] }
        : createBackendList({ origins: place.backends }),
    tokens: createCredentialFiles(place.tokenFiles),
    limits: patientLimits,
  });
  const { port } = await router.listen({ host: "127.0.0.1", port: 0 });
  return {
    port,
    stop: async () => {
      await router.stop();
      await ledger.close();
    },
  };
}
