/** Every key of a Wrangler configuration that is not simply read, with what is said about it. */

/** What a Worker here can be given: said once, after all that it cannot. */
export const supported =
  "supported are durable_objects, vars, secrets from the node's secrets file, and .wasm, .txt, .html, .sql and .bin modules";

/** Keys without effect here. Each is ignored with one warning. */
export const ignoredKeys: Readonly<Record<string, string>> = {
  observability: "logs and metrics are the node's own",
  routes: "what the fleet's address leads to is the ingress's matter",
  dev: "cellkit dev has flags of its own",
  placement: "a cell lives on whichever node owns it",
};

/** Bindings and services of Cloudflare's platform that are known and not there. */
const platformKeys: readonly string[] = [
  "ai",
  "ai_search",
  "ai_search_namespaces",
  "analytics_engine_datasets",
  "assets",
  "browser",
  "containers",
  "d1_databases",
  "dispatch_namespaces",
  "hyperdrive",
  "images",
  "kv_namespaces",
  "logfwdr",
  "media",
  "mtls_certificates",
  "pipelines",
  "queues",
  "r2_buckets",
  "ratelimits",
  "secrets_store_secrets",
  "send_email",
  "services",
  "site",
  "stream",
  "tail_consumers",
  "streaming_tail_consumers",
  "triggers",
  "unsafe",
  "unsafe_hello_world",
  "vectorize",
  "version_metadata",
  "vpc_networks",
  "vpc_services",
  "worker_loaders",
  "workflows",
];

/** Keys of Wrangler with a better answer than "unknown". */
const answeredKeys: Readonly<Record<string, string>> = {
  alias: "alias is not supported: use paths in tsconfig.json or imports in package.json",
  base_dir: "base_dir is not supported: modules are found by following the imports of main",
  build: "build is not supported: run your build first, then point main at its result",
  env: "env is not supported: keep one configuration directory for each environment",
  find_additional_modules:
    "find_additional_modules is not supported: modules are found by following the imports of main",
  rules:
    "rules is not supported: .wasm, .txt, .html, .sql and .bin are kept as modules, as in Wrangler's default rules",
  secrets:
    "secrets is not supported: secrets do not travel with a deployment, a node takes them from its secrets file",
  wasm_modules: "wasm_modules is not supported: import the .wasm file",
  text_blobs: "text_blobs is not supported: import the .txt file",
  data_blobs: "data_blobs is not supported: import the .bin file",
};

/** Whether a key asks for something of Cloudflare's platform. */
export function isPlatformKey(key: string): boolean {
  return platformKeys.includes(key);
}

/** Why a key that the schema does not have stops the deployment: one sentence that names it. */
export function refusalOfKey(key: string): string {
  const answer = Object.hasOwn(answeredKeys, key) ? answeredKeys[key] : undefined;
  return answer ?? `${key} is not a known key; remove it`;
}
