// As much of an API server as helm's `lookup` asks: the kinds there are, and some objects.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const kinds = [
  { group: "apps/v1", kind: "DaemonSet", plural: "daemonsets" },
  { group: "apps/v1", kind: "Deployment", plural: "deployments" },
  { group: "networking.k8s.io/v1", kind: "NetworkPolicy", plural: "networkpolicies" },
  { group: "policy/v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" },
  { group: "v1", kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims" },
  { group: "v1", kind: "Service", plural: "services" },
] as const;

/** Objects by the path under which they are asked for; a list has its items. */
export type Objects = Readonly<Record<string, object>>;

export interface Cluster extends AsyncDisposable {
  readonly url: string;
  /** What was asked for, without the discovery of kinds. */
  readonly asked: string[];
}

/** An API server that has these objects, answers 404 for others and 403 for the `forbidden`. */
export async function startCluster(objects: Objects, forbidden: readonly string[] = []): Promise<Cluster> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    const discovered = discovery(path);
    if (discovered !== undefined) return send(response, 200, discovered);
    asked.push(`${request.method} ${path}`);
    if (forbidden.includes(path)) return send(response, 403, status(403, "Forbidden"));
    const found = objects[path] ?? emptyList(path);
    if (found === undefined) return send(response, 404, status(404, "NotFound"));
    return send(response, 200, found);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function discovery(path: string): object | undefined {
  if (path === "/version") return { major: "1", minor: "35", gitVersion: "v1.35.2" };
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"] };
  if (path === "/apis") {
    const groups = [...new Set(kinds.map(({ group }) => group))]
      .filter((groupVersion) => groupVersion !== "v1")
      .map((groupVersion) => {
        const [name] = groupVersion.split("/");
        const version = { groupVersion, version: "v1" };
        return { name, versions: [version], preferredVersion: version };
      });
    return { kind: "APIGroupList", apiVersion: "v1", groups };
  }
  const groupVersion = /^\/apis?\/((?:[a-z0-9.]+\/)?v1)$/.exec(path)?.[1];
  if (groupVersion === undefined) return undefined;
  const resources = kinds
    .filter(({ group }) => group === groupVersion)
    .map(({ kind, plural }) => ({ name: plural, kind, namespaced: true, verbs: ["get", "list"] }));
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}

function emptyList(path: string): object | undefined {
  const [plural] = path.split("/").slice(-1);
  const kind = kinds.find((each) => each.plural === plural);
  return kind && { apiVersion: kind.group, kind: `${kind.kind}List`, metadata: {}, items: [] };
}

function status(code: number, reason: string): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", reason, code, message: reason };
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}
