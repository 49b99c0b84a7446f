// The config of one workerd process: one service, four unix sockets, one cluster. Every string that comes from outside goes
// through capnp-text; modules are files beside the config (`embed`), so their content needs no escaping at all.
import { VarsFileError } from "../errors.ts";
import { type CapnpValue, capnpText, struct } from "./capnp-text.ts";
import { controlEntrypoint, peerEntrypoint, publicEntrypoint, renderEntryModule } from "./entry-module.ts";
import {
  entryModuleName,
  peerModuleName,
  runtimeModuleName,
  type WorkerBinding,
  type WorkerPlan,
} from "./worker-plan.ts";

/** Where one workerd process lives and which cluster it joins. */
export interface WorkerdInstance {
  /** Directory of the process's own copy of its cells. */
  readonly storageDirectory: string;
  /** Unix socket that serves the application. */
  readonly publicSocket: string;
  /** Unix socket that serves the control entrypoint. */
  readonly controlSocket: string;
  /** Unix socket at which the peers' tunnels of kind `do` come out: absolute URLs on the request line. */
  readonly peerSocket: string;
  /** The same for tunnels of kind `rpc`, whose requests have a path on the request line. */
  readonly peerRpcSocket: string;
  /** The node's name, which cells here tell the control entrypoints of other nodes. */
  readonly node: string;
  /** Request header that carries `request.cf` as JSON; its name is a secret between celld and workerd. */
  readonly cfBlobHeader: string;
  /** `s3://bucket/prefix`. */
  readonly bucketUrl: string;
  /** `key=value` settings as workerd's `bucketOptions` names them. */
  readonly bucketOptions: readonly string[];
  /** `host:port` under which the other nodes reach this process's cluster port. */
  readonly advertise: string;
  /** The fleet's cluster key, at least 32 characters. */
  readonly clusterKey: string;
  /** SIGTERM to exit, at most, in milliseconds. */
  readonly stopTimeoutMs: number;
  /** Divides workerd's lease and stop times, in tests only; 1 otherwise. */
  readonly unsafeTimeDivisor: number;
  /** What this node gives in place of vars of the same name, or beside them, as text bindings. */
  readonly vars: Readonly<Record<string, string>>;
  /** Secrets, which become text bindings and win over vars of the same name. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** A config and the files that it embeds; file names are relative to the config's directory. */
export interface RenderedConfig {
  readonly config: string;
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

/** The modules of src/worker/, as text. */
export interface WorkerRuntime {
  /** runtime.js */
  readonly runtime: string;
  /** peer.js */
  readonly peer: string;
}

const storageService = "do-storage";
const applicationService = "app";
const encoder = new TextEncoder();

/** The text by which workerd derives object ids; ids are the same as those of the original celld (`idFromName`). */
export function cellKey(scriptName: string, className: string): string {
  return `cells:v1:${encoder.encode(scriptName).length}:${scriptName}:${className}`;
}

/**
 * The workerd config of a plan on an instance, as Cap'n Proto text, and the modules it embeds.
 *
 * @throws VarsFileError (CELLKIT_ENGINE_VARS_FILE) when a var has the name of a binding of cells
 */
export function renderWorkerdConfig(
  plan: WorkerPlan,
  instance: WorkerdInstance,
  { runtime, peer }: WorkerRuntime,
): RenderedConfig {
  const own = [
    { name: entryModuleName, kind: "esm", bytes: encoder.encode(renderEntryModule(plan)) },
    { name: runtimeModuleName, kind: "esm", bytes: encoder.encode(runtime) },
    { name: peerModuleName, kind: "esm", bytes: encoder.encode(peer) },
  ] as const;
  const modules = [...own, ...plan.modules].map((module, index) => ({ ...module, file: `module-${index}` }));
  const members = { esm: "esModule", wasm: "wasm", text: "text", data: "data" } as const;
  const worker = struct({
    modules: modules.map(({ name, kind, file }) => struct({ name, [members[kind]]: { embed: file } })),
    compatibilityDate: plan.compatibilityDate,
    compatibilityFlags: [...plan.compatibilityFlags],
    bindings: renderBindings(plan.bindings, instance),
    durableObjectNamespaces: plan.cells.map(({ className, sqlite }) =>
      struct({ className, uniqueKey: cellKey(plan.scriptName, className), enableSql: sqlite }),
    ),
    durableObjectStorage: plan.cells.length === 0 ? undefined : struct({ localDisk: storageService }),
  });
  const config = struct({
    services: [
      struct({ name: applicationService, worker: { constant: "worker" } }),
      struct({ name: storageService, disk: struct({ path: instance.storageDirectory, writable: true }) }),
    ],
    sockets: [
      socket("public", instance.publicSocket, {
        http: struct({ cfBlobHeader: instance.cfBlobHeader }),
        entrypoint: publicEntrypoint,
      }),
      socket("control", instance.controlSocket, {
        entrypoint: controlEntrypoint,
        props: { node: instance.node },
      }),
      socket("peer", instance.peerSocket, {
        http: struct({ style: { enumerant: "proxy" } }),
        entrypoint: peerEntrypoint,
        props: { kind: "do" },
      }),
      socket("peer-rpc", instance.peerRpcSocket, { entrypoint: peerEntrypoint, props: { kind: "rpc" } }),
    ],
    cluster: struct({
      bucket: instance.bucketUrl,
      bucketOptions: [...instance.bucketOptions],
      // Port 0: workerd picks a free one and reports it on its control descriptor.
      address: "127.0.0.1:0",
      advertise: instance.advertise,
      key: instance.clusterKey,
      stopTimeoutMs: instance.stopTimeoutMs,
      unsafeTimeDivisor: instance.unsafeTimeDivisor === 1 ? undefined : instance.unsafeTimeDivisor,
    }),
  });
  return {
    config: [
      `using Workerd = import "/workerd/workerd.capnp";`,
      "",
      `const config :Workerd.Config = ${capnpText(config)};`,
      "",
      `const worker :Workerd.Worker = ${capnpText(worker)};`,
      "",
    ].join("\n"),
    files: modules.map(({ file, bytes }) => ({ name: file, bytes })),
  };
}

function socket(
  name: string,
  path: string,
  to: { entrypoint: string; http?: CapnpValue; props?: Readonly<Record<string, string>> },
): CapnpValue {
  const { entrypoint, http = struct({}), props } = to;
  const given = props === undefined ? undefined : struct({ json: JSON.stringify(props) });
  return struct({
    name,
    address: `unix:${path}`,
    http,
    service: struct({ name: applicationService, entrypoint, props: given }),
  });
}

function renderBindings(
  bindings: readonly WorkerBinding[],
  { vars, secrets }: Pick<WorkerdInstance, "vars" | "secrets">,
): readonly CapnpValue[] {
  const taken = bindings.find(({ kind, name }) => kind === "cells" && Object.hasOwn(vars, name));
  if (taken !== undefined) {
    throw new VarsFileError(
      `the vars file sets ${taken.name}, which binds cells in this deployment: give the var another name`,
    );
  }
  const given = new Map([...Object.entries(vars), ...Object.entries(secrets)]);
  const kept = bindings.filter(({ name }) => !given.has(name));
  const added = Array.from(given, ([name, text]) => ({ kind: "text", name, text }) as const);
  return [...kept, ...added].map((binding) => {
    if (binding.kind === "text") return struct({ name: binding.name, text: binding.text });
    if (binding.kind === "json") return struct({ name: binding.name, json: binding.json });
    return struct({ name: binding.name, durableObjectNamespace: binding.className });
  });
}
