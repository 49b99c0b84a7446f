// The vectors of the specification, as far as an edge is concerned.
import { readFileSync } from "node:fs";

interface RouteVector {
  method: string;
  path: string;
  allowed: boolean;
}

const vectors = JSON.parse(
  readFileSync(new URL("../vectors/execution-vectors.json", import.meta.url), "utf8"),
) as {
  edge: Record<"parent" | "execution" | "scoped", RouteVector[]> & {
    refusedTargets: string[];
    backends: { origin: string; accepted: boolean }[];
  };
  executionIds: { id: string; routerAccepts: boolean; edgeAccepts: boolean }[];
};

export const routeVectors = vectors.edge;
export const { refusedTargets, backends: backendVectors } = vectors.edge;
export const executionIdVectors = vectors.executionIds;
