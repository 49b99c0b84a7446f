// Variables of the original celld that are no option here. What this one reads stands in config.ts; the README's table
// ("Environment") is made from both.
import type { OtherVariable } from "@cellkit/daemon";

const none = (reason: string): OtherVariable => ({ effect: "none", reason });
const refused = (reason: string): OtherVariable => ({ effect: "refused", reason });

const workerdDecides = none("workerd decides this by itself");
const workerdReplicates = none("workerd keeps the cells' log in the bucket; there is nothing to tune here");
const notManaged = none("there is no managed control plane here");
const noTelemetry = none("nothing is exported; scrape GET /metrics of the internal listener");
const notBounded = none("nothing bounds the cells of a node yet; bound the container's memory");
const noLoader = none("a Worker that binds it is refused when it is deployed");
const noAssets = none(
  "static assets are not served yet; a Worker that has them is refused when it is deployed",
);

/**
 * Known variables without effect, each with the reason, and those that are refused since ignoring them would be unsafe:
 * the Worker would run with other settings than its operator gave.
 */
export const otherVariables: Readonly<Record<string, OtherVariable>> = {
  "CELLD_VAR_*": refused("give vars by --vars-file (CELLD_VARS_FILE), or deploy them"),

  CELLD_OUTPUT_GATE: none("an answer always waits until the writes before it are in the bucket"),
  CELLD_DURABILITY: none("every acknowledged write is in the bucket"),
  CELLD_STORAGE_PROBE: none("the store is not probed at each start"),
  CELLD_TRUST_FORWARDED_HEADERS: none("the client's address is that of its connection"),
  CELLD_TTL_MS: none("the lease's lifetime is workerd's (20 s)"),
  CELLD_OPERATION_DEADLINE_MS: workerdDecides,
  CELLD_SHUTDOWN_TOTAL_MS: none("--shutdown-drain-ms bounds the whole drain"),
  CELLD_READY_FLEET_GATE_MS: none("a node is healthy as soon as it serves"),
  CELLD_RELEASES: workerdDecides,
  CELLD_ACTIVATIONS: workerdDecides,
  CELLD_EVICTIONS: workerdDecides,
  CELLD_IDLE_EVICT_S: none("workerd evicts a cell that was idle for about 10 s"),
  CELLD_ALARM_RESIDENT_MS: workerdDecides,
  CELLD_WAKER_TICK_MS: workerdDecides,
  CELLD_MAX_RESIDENT_CELLS: notBounded,
  CELLD_MAX_RSS_MB: notBounded,
  CELLD_PRESSURE_OWNERSHIP: notBounded,
  CELLD_V8_HEAP_LIMIT_MB: workerdDecides,
  CELLD_LOCAL_CACHE_MAX_BYTES: none("the copies of cells in the data directory are not pruned yet"),
  CELLD_ADMISSION_WAIT_MS: workerdDecides,
  CELLD_MAX_REQUESTS: workerdDecides,
  CELLD_MAX_REQUEST_BODY_BYTES: none("bodies are streamed and not bounded"),
  CELLD_MAX_STATELESS_ISOLATES: none("a node runs one isolate"),
  CELLD_FETCH_TIMEOUT_S: workerdDecides,
  CELLD_HANDLER_BUDGET_S: workerdDecides,
  CELLD_MAX_OUTBOUND_WEBSOCKETS: workerdDecides,
  CELLD_TOKIO_THREADS: workerdDecides,
  CELLD_LTX_COMPACTION: workerdReplicates,
  CELLD_LTX_COMPACTION_MIN_TXIDS: workerdReplicates,
  CELLD_LTX_COMPACTIONS: workerdReplicates,
  CELLD_LOG_BUNDLE: workerdReplicates,
  CELLD_LOG_FLUSH_MS: workerdReplicates,
  "CELLD_LOG_EVICT_*": workerdReplicates,
  CELLD_ASSET_CACHE_DIR: noAssets,
  CELLD_ASSET_CACHE_BYTES: noAssets,
  CELLD_ESBUILD: none("`cellkit deploy` brings its own esbuild"),
  CELLD_WORKER_LOADER: noLoader,
  CELLD_MAX_LOADED_WORKERS: noLoader,
  CELLD_AI_BINDING: noLoader,
  CELLD_AI_URL: noLoader,
  "CELLD_OTEL*": noTelemetry,
  "OTEL_*": noTelemetry,
  "CELLD_CLOUD*": notManaged,
  CELLD_CONTROL_URL: notManaged,
  CELLD_ENV: notManaged,
  CELLD_CONFIG_DIR: notManaged,
  CELLD_INSTANCE_NAME: notManaged,
  "CELLD_PRESENCE_*": notManaged,
  CELLD_REEXEC_PROBE_SIGNING_KEY: none("it belongs to the original's own start"),
  RUST_LOG: none("use --log-level"),
};

/** The variables of an environment that were accepted without effect, sorted; `/metrics` lists them. */
export function ignoredVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.keys(env)
    .filter((name) => env[name] !== undefined && otherOf(name)?.effect === "none")
    .sort();
}

function otherOf(name: string): OtherVariable | undefined {
  const entry = Object.entries(otherVariables).find(([other]) =>
    other.endsWith("*") ? name.startsWith(other.slice(0, -1)) : name === other,
  );
  return entry?.[1];
}
