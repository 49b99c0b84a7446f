// What is refused because of what the cluster has: an install or upgrade sees that, a template does not.
import type { Objects } from "./cluster.ts";
import { userValues } from "./helm.ts";
import { celln, external, type RefusalCase } from "./refusal-cases.ts";

const claimOf = (accessMode: string): object => ({
  metadata: { name: "celln-router-ownership" },
  spec: { accessModes: [accessMode] },
});
const claims = "/api/v1/namespaces/celln-system/persistentvolumeclaims";
const daemonSetIn = (namespace: string): string =>
  `/apis/apps/v1/namespaces/${namespace}/daemonsets/celln-router`;
const daemonSet = { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "celln-router" } };
const listOf = (...items: object[]): object => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaimList",
  metadata: {},
  items,
});
/** A cluster with the claim that the values name. */
export const preparedCluster: Objects = { [claims]: listOf(claimOf("ReadWriteMany")) };

export const clusterRefusals: readonly (RefusalCase & { cluster: Objects })[] = [
  ...["celln-system", "control-plane", "sympozium-system"].map((namespace) => ({
    rule: `beside an older router in ${namespace}`,
    values: celln({ controlPlaneNamespace: namespace }),
    cluster: { ...preparedCluster, [daemonSetIn(namespace)]: daemonSet },
    says: [migration(namespace)],
  })),
  {
    rule: "beside an older router, also if the next one is external",
    values: external({ tokenSecret: "a", capabilityTokenSecret: "b" }),
    cluster: { [daemonSetIn("celln-system")]: daemonSet },
    says: [migration("celln-system")],
  },
  {
    rule: "without the claim",
    values: userValues(),
    cluster: { [claims]: listOf({ ...claimOf("ReadWriteMany"), metadata: { name: "other" } }) },
    says: [
      "celln.router.ownershipClaim: celln-system has no PersistentVolumeClaim of that name. This chart makes none, since one of its own would go with the release, and the ledger with it.",
    ],
  },
  {
    rule: "a claim for one pod, whatever the number of replicas",
    values: celln({ router: { replicas: 1 } }),
    cluster: { [claims]: listOf(claimOf("ReadWriteOncePod")) },
    says: [
      "celln.router.ownershipClaim: its access mode ReadWriteOncePod lets one pod have it. Replicas share it, and during a rollout even a single one does with its successor.",
    ],
  },
];

function migration(namespace: string): string {
  return `DaemonSet celln-router in ${namespace}: a router without a ledger still takes work, and this ledger knows nothing of it. Stop all submissions, settle every outstanding run with the dispatcher that has it, keep receipts and audit, delete the DaemonSet, then install.`;
}
