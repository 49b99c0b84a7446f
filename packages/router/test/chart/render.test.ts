import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  chartDirectory,
  helm,
  objectsOf,
  only,
  render,
  runHelm,
  template,
  userValues,
  type Values,
} from "./support/helm.ts";
import { danglingNames, deploymentSpec, schemaProblem, unknownFields } from "./support/kubernetes.ts";

describe.skipIf(helm === undefined)("the chart", () => {
  it("renders no object by default", async () => {
    expect(await render({})).toEqual([]);
    expect(await render({ celln: { router: { replicas: 5, ownershipClaim: "claim" } } })).toEqual([]);
  });

  it("renders the values of the user's document as they are", async () => {
    const objects = await render(userValues());
    expect(
      objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`).sort(),
    ).toEqual([
      "Deployment celln-system/celln-router",
      "NetworkPolicy celln-system/celln-router-ingress",
      "PodDisruptionBudget celln-system/celln-router",
      "Service celln-system/celln-router",
    ]);
    const { replicas, template } = deploymentSpec(only(objects, "Deployment"));
    expect(replicas).toBe(2);
    const [router, ...others] = template.spec.containers;
    expect(others).toEqual([]);
    expect(router).toMatchObject({
      image:
        "registry.example/celln-router@sha256:6f9fad4dd45a8e4ebbbf2ee7a0e3b1c5d2f40c71d6c8a5b0e1f2a3b4c5d6e7f8",
      command: ["cellkit-router"],
      args: [
        "--listen=0.0.0.0:8788",
        "--internal-listen=0.0.0.0:8789",
        "--mode=round-robin",
        "--backends=http://dispatcher-a:8787,http://dispatcher-b:8787",
        "--client-token-file=/etc/celln/client/token",
        "--token-file=/etc/celln/backend/token",
        "--capability-token-file=/etc/celln/capability/token",
        "--ownership-dir=/var/lib/celln/ownership",
        "--max-connections=4096",
        "--log-level=info",
        "--log-format=json",
      ],
    });
    expect(only(objects, "Service").spec).toMatchObject({
      type: "ClusterIP",
      ports: [{ port: 8787, targetPort: "http" }],
    });
    expect(router?.ports).toContainEqual({ name: "http", containerPort: 8788, protocol: "TCP" });
  });

  it("is not for a Kubernetes that lacks what its pods use", async () => {
    expect((await template(userValues(), ["--kube-version", "1.30.0"])).code).toBe(0);
    expect((await template(userValues(), ["--kube-version", "1.29.9"])).stderr).toContain(
      "kubeVersion: >=1.30.0-0",
    );
  });

  it("renders the example of its README", async () => {
    const readme = readFileSync(join(chartDirectory, "README.md"), "utf8");
    const [, example = ""] = /```yaml\n([\s\S]*?)```/.exec(readme) ?? [];
    expect(await render(parse(example) as Values)).toEqual(await render(userValues()));
  });

  it("reads the same in both versions of YAML", async () => {
    const { stdout } = await template(userValues());
    expect(objectsOf(stdout, "1.2")).toEqual(objectsOf(stdout, "1.1"));
  });

  it("passes helm's lint, with every warning an error, with and without a router", async () => {
    for (const values of [{}, userValues()]) {
      const { code, stdout, stderr } = await runHelm(
        ["lint", "--strict", chartDirectory, "--values", "-"],
        values,
      );
      expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
    }
  });

  it("tries the image's command line with the router's own flags, before it has a token or the ledger", async () => {
    const { template } = deploymentSpec(only(await render(userValues()), "Deployment"));
    const [router] = template.spec.containers;
    const [trial, ...others] = template.spec.initContainers;
    expect(others).toEqual([]);
    expect(trial?.image).toBe(router?.image);
    expect(trial?.command).toEqual(router?.command);
    expect(trial?.args).toEqual([...(router?.args ?? []), "--print-config"]);
    expect(trial?.volumeMounts).toBeUndefined();
  });

  it("runs, as the same user, the command that the Containerfile puts on the path", async () => {
    const containerfile = readFileSync(join(chartDirectory, "..", "Containerfile"), "utf8");
    const { spec } = deploymentSpec(only(await render(userValues()), "Deployment")).template;
    const { runAsUser, runAsGroup } = spec.securityContext;
    expect(containerfile).toContain(`\nUSER ${runAsUser}:${runAsGroup}\n`);
    expect(containerfile).toContain("\nENV PATH=/app/bin:$PATH\n");
    expect(containerfile).toContain(`\nENTRYPOINT ["${spec.containers[0]?.command[0]}"]\n`);
  });

  it("mounts Secrets as directories that can be updated, readable by the router's group alone", async () => {
    const objects = await render(userValues());
    const { containers, volumes } = deploymentSpec(only(objects, "Deployment")).template.spec;
    expect(containers[0]?.volumeMounts).toEqual([
      { name: "client-token", mountPath: "/etc/celln/client", readOnly: true },
      { name: "backend-token", mountPath: "/etc/celln/backend", readOnly: true },
      { name: "capability-token", mountPath: "/etc/celln/capability", readOnly: true },
      { name: "ownership", mountPath: "/var/lib/celln/ownership" },
    ]);
    const token = (secretName: string) => ({
      secretName,
      defaultMode: 0o440,
      items: [{ key: "token", path: "token" }],
    });
    expect(volumes).toEqual([
      { name: "client-token", secret: token("celln-router-client") },
      { name: "backend-token", secret: token("celln-dispatcher-backend") },
      { name: "capability-token", secret: token("celln-discovery") },
      { name: "ownership", persistentVolumeClaim: { claimName: "celln-router-ownership" } },
    ]);
  });

  it("keeps a claim that is not its own: no PersistentVolumeClaim, Secret or Namespace is among its objects", async () => {
    const kinds = (await render(userValues())).map(({ kind }) => kind);
    for (const kind of ["PersistentVolumeClaim", "Secret", "Namespace", "DaemonSet"]) {
      expect(kinds).not.toContain(kind);
    }
  });

  it("lets in two kinds of pods of the control plane's namespace, by namespace and label at once", async () => {
    const peer = (namespace: string, podLabels: Record<string, string>) => ({
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      podSelector: { matchLabels: podLabels },
    });
    const policy = async (values: object) =>
      only(await render(userValues({ celln: values })), "NetworkPolicy").spec;
    const clients = (namespace: string) => ({
      ports: [{ protocol: "TCP", port: 8788 }],
      from: [
        peer(namespace, { "control-plane": "controller-manager" }),
        peer(namespace, { "app.kubernetes.io/component": "apiserver" }),
      ],
    });
    const selection = {
      podSelector: { matchLabels: { "app.kubernetes.io/name": "celln-router" } },
      policyTypes: ["Ingress"],
    };
    expect(await policy({})).toEqual({ ...selection, ingress: [clients("control-plane")] });
    expect(await policy({ controlPlaneNamespace: "elsewhere" })).toEqual({
      ...selection,
      ingress: [clients("elsewhere")],
    });
    const podLabels = { "app.kubernetes.io/name": "prometheus" };
    expect(await policy({ router: { metricsPeers: [{ namespace: "monitoring", podLabels }] } })).toEqual({
      ...selection,
      ingress: [
        clients("control-plane"),
        { ports: [{ protocol: "TCP", port: 8789 }], from: [peer("monitoring", podLabels)] },
      ],
    });
  });

  it("keeps an older router's pods, which carry the same name, out of the Service", async () => {
    const { selector } = only(await render(userValues()), "Service").spec as { selector: object };
    expect(selector).toEqual({
      "app.kubernetes.io/name": "celln-router",
      "cellkit.dev/component": "execution-router",
    });
  });

  it("gives the pods no right that the router has no use for", async () => {
    const { spec } = deploymentSpec(only(await render(userValues()), "Deployment")).template;
    expect(spec.automountServiceAccountToken).toBe(false);
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      fsGroup: 10001,
      seccompProfile: { type: "RuntimeDefault" },
    });
    for (const container of [...spec.initContainers, ...spec.containers]) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(container).not.toHaveProperty("env");
      expect(container).not.toHaveProperty("envFrom");
      expect(container.resources.limits["memory"]).toBe("1Gi");
    }
  });

  it("names a tag only where no digest is given, and pulls it anew then", async () => {
    const imageOf = async (image: object) => {
      const objects = await render(userValues({ celln: { router: { image } } }));
      const [router] = deploymentSpec(only(objects, "Deployment")).template.spec.containers;
      return [router?.image.replace(/sha256:.*/, "DIGEST"), router?.imagePullPolicy];
    };
    expect(await imageOf({ tag: "1.2.3" })).toEqual(["registry.example/celln-router@DIGEST", "IfNotPresent"]);
    expect(await imageOf({ tag: "1.2.3", digest: "" })).toEqual([
      "registry.example/celln-router:1.2.3",
      "Always",
    ]);
  });

  it("finds what a schema does not know, and what a name leads to nowhere", async () => {
    const objects = await render(userValues());
    const broken = structuredClone(objects);
    const { template } = deploymentSpec(only(broken, "Deployment"));
    Object.assign(template.spec.securityContext, { runAsNonroot: true });
    template.metadata.labels["app.kubernetes.io/name"] = "other";
    template.spec.volumes.pop();
    expect(unknownFields(only(broken, "Deployment"))).toEqual([
      "spec.template.spec.securityContext.runAsNonroot",
    ]);
    expect(danglingNames(broken)).toEqual([
      "the Deployment's selector",
      "the Service's selector",
      "the NetworkPolicy's selector",
      "the budget's selector",
      "the mount ownership",
    ]);
    Object.assign(template.spec, { containers: undefined });
    expect(schemaProblem(only(broken, "Deployment"))).toContain("containers");
  });
});
