// A router with a placement rule of its own: a new execution goes to the dispatcher with the largest part of its cells free.
import { openLedger } from "@cellkit/ledger";
import {
  type BackendHealth,
  createBackendList,
  createCredentialFiles,
  createRouter,
  type Placement,
  walkFromHash,
} from "@cellkit/router";

/**
 * All dispatchers are asked at once. Those that are equally free take turns by the id's hash, as in the original; one that does not tell
 * its figures comes after all that do.
 */
export const placeWhereFree: Placement = async ({ id, backends, health }) => {
  const walk = walkFromHash(id, backends);
  const found = await Promise.all(
    walk.map(async (origin) => ({ origin, free: freeRatio(await health(origin)) })),
  );
  const best = found.reduce((one, other) => (other.free > one.free ? other : one), { origin: "", free: -1 });
  return best.free < 0 ? undefined : best.origin;
};

/** 0 to 1; below 0 where nothing may go. */
function freeRatio({ healthy, node }: BackendHealth): number {
  if (!healthy) return -1;
  if (node === undefined) return 0;
  const [live, max] = [Number(node.live_cells), Number(node.max_cells)];
  return live < max ? (max - live) / max : -1;
}

/** Where its parts lie. */
export interface Place {
  readonly ledger: string;
  readonly backends: readonly string[];
  readonly clientTokenFile: string;
  readonly backendTokenFile: string;
  readonly port: number;
}

/** Everything else is the router's own: it claims an id before it forwards, forwards once, and sends every repeat to the first owner. */
export async function startRouter(place: Place): Promise<{ url: string; stop: () => Promise<void> }> {
  const ledger = await openLedger(place.ledger);
  try {
    const router = createRouter({
      ledger,
      backends: createBackendList({ origins: place.backends }),
      tokens: createCredentialFiles({ client: place.clientTokenFile, backend: place.backendTokenFile }),
      placement: placeWhereFree,
    });
    const { port } = await router.listen({ host: "127.0.0.1", port: place.port });
    return { url: `http://127.0.0.1:${port}`, stop: () => router.stop().finally(() => ledger.close()) };
  } catch (error) {
    await ledger.close();
    throw error;
  }
}
