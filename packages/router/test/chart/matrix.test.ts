import { parseConfig } from "@cellkit/daemon";
import { describe, expect, inject, it } from "vitest";
import { routerOptions } from "../../src/config.ts";
import { helm, only, render, userValues, type Values } from "./support/helm.ts";
import { danglingNames, deploymentSpec, schemaProblem, unknownFields } from "./support/kubernetes.ts";

/** Each dimension on its own; the long run has them in all pairs. */
const dimensions: readonly (readonly [string, Values])[] = [
  ["the user's own", {}],
  ["no replica", { router: { replicas: 0 } }],
  ["one replica", { router: { replicas: 1 } }],
  ["seven replicas", { router: { replicas: 7 } }],
  ["a tag", { router: { image: { digest: "", tag: "1.2.3" } } }],
  ["an image with a registry's port", { router: { image: { repository: "r.example:5000/a/b_c" } } }],
  ["an image of the default registry", { router: { image: { repository: "celln-router" } } }],
  ["one dispatcher, without a port", { router: { backends: ["http://dispatcher-a"] } }],
  ["an IPv6 dispatcher", { router: { backends: ["http://[2001:db8::1]:8787"] } }],
  [
    "32 dispatchers",
    { router: { backends: Array.from({ length: 32 }, (_, index) => `http://dispatcher-${index}:8787`) } },
  ],
  ["random selection", { router: { mode: "random" } }],
  ["a ledger that must exist", { router: { requireExistingLedger: true } }],
  ["an overlap of tokens", { router: { rotationOverlap: true } }],
  [
    "TLS of its own",
    { routerUrl: "https://celln-router.celln-system:8787", router: { tlsSecret: "tls.router" } },
  ],
  ["an https URL, acknowledged by nobody", { routerUrl: "https://router.example", allowInsecureHttp: false }],
  ["a CA and harnesses", { caConfigMap: "operator-cas", harnessEnabled: true }],
  ["another control plane", { controlPlaneNamespace: "sympozium-system" }],
  [
    "metrics",
    { router: { metricsPeers: [{ namespace: "monitoring", podLabels: { a: "1", "b.example/c": "d" } }] } },
  ],
  ["a private registry", { router: { imagePullSecrets: [{ name: "registry" }] } }],
  [
    "a place",
    {
      router: {
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [{ key: "control-plane", operator: "Exists", effect: "NoSchedule" }],
      },
    },
  ],
  ["more memory", { router: { resources: { limits: { memory: "1Gi" }, requests: { memory: "1Gi" } } } }],
  [
    "what belongs to other charts, off",
    { bootstrap: { enabled: false, size: "1Gi" }, fleet: { enabled: false } },
  ],
  ["as many connections as there can be", { router: { maxConnections: 65_536 } }],
  ["debug logs", { router: { logLevel: "debug" } }],
];

describe.skipIf(helm === undefined)("whatever the values,", () => {
  const cases = dimensions.map(([name, values]) => ({ name, values: userValues({ celln: values }) }));
  const pairs = dimensions.flatMap(([a, first], index) =>
    dimensions
      .slice(index + 1)
      .map(([b, second]) => ({ name: `${a} and ${b}`, values: both(first, second) }))
      .filter(({ values }) => !speaksTlsAndIsCalledInTheClear(values)),
  );

  it.concurrent.each(inject("size") === "long" ? [...cases, ...pairs] : cases)(
    "$name: what is rendered is whole",
    async ({ values }) => {
      const objects = await render(values);
      for (const object of objects) {
        expect(schemaProblem(object)).toBeUndefined();
        expect(unknownFields(object)).toEqual([]);
      }
      expect(danglingNames(objects)).toEqual([]);
      const budgets = objects.filter(({ kind }) => kind === "PodDisruptionBudget").length;
      const { replicas, template } = deploymentSpec(only(objects, "Deployment"));
      expect(budgets).toBe(replicas > 1 ? 1 : 0);

      const pod = template.spec;
      const mounts = pod.containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
      for (const { name, mountPath, ...rest } of mounts) {
        expect(rest, mountPath).toEqual(name === "ownership" ? {} : { readOnly: true });
      }
      for (const { secret, persistentVolumeClaim, ...rest } of pod.volumes) {
        expect(Object.keys(rest)).toEqual(["name"]);
        expect(secret?.defaultMode ?? 0o440).toBe(0o440);
        expect([secret, persistentVolumeClaim].filter((each) => each !== undefined)).toHaveLength(1);
      }

      const [router] = pod.containers;
      const identity = { name: "cellkit-router", version: "0", description: "", env: {} };
      const parsed = parseConfig(routerOptions, { ...identity, argv: router?.args ?? [] });
      if (parsed.kind !== "config") throw new TypeError(parsed.kind);
      const files = Object.values(parsed.config).filter(
        (value) => typeof value === "string" && value.startsWith("/"),
      );
      const directories = mounts.map(({ mountPath }) => mountPath);
      expect(files.length).toBeGreaterThan(3);
      for (const file of files)
        expect(directories.some((directory) => `${file}/`.startsWith(`${directory}/`))).toBe(true);
      const [trial] = pod.initContainers;
      expect(parseConfig(routerOptions, { ...identity, argv: trial?.args ?? [] }).kind).toBe("print-config");
    },
  );
});

function both(first: Values, second: Values): Values {
  const router = { ...asObject(first["router"]), ...asObject(second["router"]) };
  return userValues({ celln: { ...first, ...second, router } });
}

function asObject(value: unknown): Values {
  return (value ?? {}) as Values;
}

function speaksTlsAndIsCalledInTheClear(values: Values): boolean {
  const { routerUrl = "http://", router } = asObject(values["celln"]) as {
    routerUrl?: string;
    router: Values;
  };
  return router["tlsSecret"] !== undefined && !routerUrl.startsWith("https://");
}
