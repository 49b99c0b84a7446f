// What Kubernetes would say about rendered objects: its own schemas, and how the parts of an object name each other.
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { Service } from "kubernetes-models/v1/Service";
import type { Rendered } from "./helm.ts";

const kinds = {
  "apps/v1 Deployment": Deployment,
  "networking.k8s.io/v1 NetworkPolicy": NetworkPolicy,
  "policy/v1 PodDisruptionBudget": PodDisruptionBudget,
  "v1 Service": Service,
} as const;

type Json = Record<string, unknown>;
/** The parts of a pod that tests look at. */
interface PodSpec {
  automountServiceAccountToken: boolean;
  terminationGracePeriodSeconds: number;
  securityContext: Json;
  initContainers: Container[];
  containers: Container[];
  volumes: Volume[];
}
interface Container {
  name: string;
  image: string;
  imagePullPolicy: string;
  command: string[];
  args: string[];
  ports?: { name: string; containerPort: number }[];
  securityContext: Json;
  resources: { requests: Json; limits: Json };
  volumeMounts?: {
    name: string;
    mountPath: string;
    readOnly?: boolean;
    subPath?: string;
    subPathExpr?: string;
  }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
}
interface Probe {
  httpGet: { path: string; port: string };
}
interface Volume {
  name: string;
  secret?: { secretName: string; defaultMode: number; items?: { key: string; path: string }[] };
  persistentVolumeClaim?: { claimName: string };
}
export interface DeploymentSpec {
  replicas: number;
  selector: { matchLabels: Record<string, string> };
  template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
}

export function deploymentSpec(object: Rendered): DeploymentSpec {
  return object.spec as DeploymentSpec;
}

/** The validator of an object's kind. @throws TypeError for a kind that no test knows */
function validator(object: Rendered): (candidate: Rendered) => void {
  const Kind = kinds[`${object.apiVersion} ${object.kind}` as keyof typeof kinds];
  if (Kind === undefined) throw new TypeError(`no schema for ${object.apiVersion} ${object.kind}`);
  return (candidate) => new Kind(candidate as never).validate();
}

/** What the schema of the object's kind has against it: wrong types and missing fields. */
export function schemaProblem(object: Rendered): string | undefined {
  return refusal(validator(object), object);
}

/**
 * Fields that the schema does not know, which Kubernetes would drop or refuse. The schema allows them, so each field is tried:
 * with a value of no possible type in its place, a known field is refused and an unknown one is not.
 */
export function unknownFields(object: Rendered): string[] {
  const validate = validator(object);
  const found: string[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, child] of Object.entries(value)) {
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      const changed = structuredClone(object);
      let parent: unknown = changed;
      for (const step of path) parent = (parent as Json)[step];
      (parent as Json)[key] = [[["of no type"]]];
      if (refusal(validate, changed) === undefined && !isQuantity(at)) found.push(at.join("."));
      visit(child, at);
    }
  };
  visit(object, []);
  return found;
}

/** Quantities have no type in the schemas: they may be numbers or strings. */
function isQuantity(path: readonly (string | number)[]): boolean {
  return path.at(-3) === "resources" && (path.at(-2) === "requests" || path.at(-2) === "limits");
}

function refusal(validate: (candidate: Rendered) => void, object: Rendered): string | undefined {
  try {
    validate(object);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/** Parts that name each other in vain: selectors, mounts, ports. */
export function danglingNames(objects: readonly Rendered[]): string[] {
  const deployment = deploymentSpec(find(objects, "Deployment"));
  const labels = deployment.template.metadata.labels;
  const pod = deployment.template.spec;
  const service = find(objects, "Service").spec as {
    selector: Record<string, string>;
    ports: { targetPort: string }[];
  };
  const policy = find(objects, "NetworkPolicy").spec as {
    podSelector: { matchLabels: Record<string, string> };
  };
  const found: string[] = [];
  const claim = (holds: boolean, what: string): void => {
    if (!holds) found.push(what);
  };
  claim(selects(deployment.selector.matchLabels, labels), "the Deployment's selector");
  claim(selects(service.selector, labels), "the Service's selector");
  claim(selects(policy.podSelector.matchLabels, labels), "the NetworkPolicy's selector");
  for (const budget of objects.filter(({ kind }) => kind === "PodDisruptionBudget")) {
    const { selector } = budget.spec as { selector: { matchLabels: Record<string, string> } };
    claim(selects(selector.matchLabels, labels), "the budget's selector");
  }
  const ports = pod.containers.flatMap((each) => each.ports ?? []).map(({ name }) => name);
  for (const { targetPort } of service.ports)
    claim(ports.includes(targetPort), `the Service's port ${targetPort}`);
  const volumes = pod.volumes.map(({ name }) => name);
  const mounts = pod.containers.flatMap((each) => each.volumeMounts ?? []).map(({ name }) => name);
  for (const name of mounts) claim(volumes.includes(name), `the mount ${name}`);
  for (const name of volumes) claim(mounts.includes(name), `the volume ${name}`);
  return found;
}

function find(objects: readonly Rendered[], kind: string): Rendered {
  const object = objects.find((each) => each.kind === kind);
  if (object === undefined) throw new TypeError(`no ${kind}`);
  return object;
}

function selects(selector: Record<string, string>, labels: Record<string, string>): boolean {
  const wanted = Object.entries(selector);
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
}
