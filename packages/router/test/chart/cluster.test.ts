import { describe, expect, it } from "vitest";
import { startCluster } from "./support/cluster.ts";
import { clusterRefusals, preparedCluster } from "./support/cluster-refusals.ts";
import {
  chartDirectory,
  type HelmAnswer,
  helm,
  problemsIn,
  runHelm,
  userValues,
  type Values,
} from "./support/helm.ts";

describe.skipIf(helm === undefined)("an install asks the cluster and refuses", () => {
  it.concurrent.each(clusterRefusals)("$rule", async ({ values, cluster, says }) => {
    await using server = await startCluster(cluster);
    const { code, stderr } = await install(values, server.url);
    expect(code).not.toBe(0);
    expect(problemsIn(stderr)).toEqual(says);
  });

  it("when it may not look for an older router", async () => {
    const path = "/apis/apps/v1/namespaces/celln-system/daemonsets/celln-router";
    await using server = await startCluster(preparedCluster, [path]);
    const { code, stderr } = await template(userValues(), server.url);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/error calling lookup: .*Forbidden/);
  });
});

describe.skipIf(helm === undefined)(
  "beside a cluster that has the claim and no older router, the chart",
  () => {
    it("renders what it renders without a cluster", async () => {
      await using server = await startCluster(preparedCluster);
      const beside = await template(userValues(), server.url);
      const apart = await template(userValues());
      expect(beside.code).toBe(0);
      expect(beside.stdout).toBe(apart.stdout);
    });

    it("asks for its own objects, the claim and older routers, and never for a Secret", async () => {
      await using server = await startCluster(preparedCluster);
      await template(userValues({ celln: { controlPlaneNamespace: "sympozium-system" } }), server.url);
      expect([...new Set(server.asked)].sort()).toEqual([
        "GET /api/v1/namespaces/celln-system/persistentvolumeclaims",
        "GET /api/v1/namespaces/celln-system/services/celln-router",
        "GET /apis/apps/v1/namespaces/celln-system/daemonsets/celln-router",
        "GET /apis/apps/v1/namespaces/celln-system/deployments/celln-router",
        "GET /apis/apps/v1/namespaces/control-plane/daemonsets/celln-router",
        "GET /apis/apps/v1/namespaces/sympozium-system/daemonsets/celln-router",
        "GET /apis/networking.k8s.io/v1/namespaces/celln-system/networkpolicies/celln-router-ingress",
        "GET /apis/policy/v1/namespaces/celln-system/poddisruptionbudgets/celln-router",
      ]);
    });

    it("asks for nothing while it is not enabled", async () => {
      await using server = await startCluster({});
      expect((await template({}, server.url)).code).toBe(0);
      expect(server.asked).toEqual([]);
    });
  },
);

const release = ["release", chartDirectory, "--namespace", "control-plane", "--values", "-"];

function install(values: Values, server: string): Promise<HelmAnswer> {
  return runHelm(["install", ...release, "--dry-run=server", "--kube-apiserver", server], values);
}

function template(values: Values, server?: string): Promise<HelmAnswer> {
  const asking = ["--dry-run=server", "--disable-openapi-validation", "--kube-apiserver"];
  const cluster = server === undefined ? [] : [...asking, server];
  return runHelm(["template", ...release, ...cluster], values);
}
