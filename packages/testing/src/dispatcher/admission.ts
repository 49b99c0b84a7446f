// Whether a dispatcher takes a request (execution API, section 10.3), in its order.
import { type ExecutionRequest, JsonError, parseExecutionRequest } from "@cellkit/execution";
import { atCapacity } from "../core/fault.ts";
import { type Answer, refusal } from "../core/wire-answer.ts";
import { isFit, type Reserved, type ResolvedNode } from "./node-figures.ts";

/** The longest body of a submission or prewarm. */
export const maxBodyBytes = 65_536;

export type Read =
  | { readonly kind: "request"; readonly request: ExecutionRequest }
  | { readonly kind: "refused"; readonly answer: Answer };

/** The request in a body, or why it is none that could run here. */
export function readRequest(body: Uint8Array, node: ResolvedNode): Read {
  const parsed = parsedOf(body);
  if (typeof parsed === "string") return refused(refusal(400, parsed));
  switch (parsed.kind) {
    case "malformed":
      return refused(refusal(400, parsed.problem));
    case "invalid": {
      const problems = parsed.problems.map(({ code, field }) => ({
        code,
        field,
        message: `${field}: ${code}`,
      }));
      return refused(refusal(400, "invalid execution request", { problems }));
    }
    case "unsupported":
      return refused(unsupported(parsed.problems.map(({ field }) => field).join(", ")));
    case "valid": {
      const host = forbiddenHost(parsed.request, node);
      if (host === undefined) return { kind: "request", request: parsed.request };
      const reason = `egress host ${host} is not allowed on this node`;
      return refused(refusal(403, "egress policy refused execution request", { reason }));
    }
  }
}

/** What a request holds while it runs, or is prewarmed. */
export function reservationOf({ capabilities: { memoryBytes, egress } }: ExecutionRequest): Reserved {
  return { cells: 1, memoryBytes, egressSlots: egress.length > 0 ? 1 : 0 };
}

/** No prewarm takes longer, whatever its request allows. */
const maxPrewarmMs = 30_000n;

/** How long a prewarm of this request may take, in ms. */
export function prewarmLimitMs({ capabilities: { timeoutMs } }: ExecutionRequest): number {
  return Number(timeoutMs < maxPrewarmMs ? timeoutMs : maxPrewarmMs);
}

/** Why a request that is new here is not admitted; undefined admits it. */
export function refusedAdmission(
  { capabilities, execution }: ExecutionRequest,
  node: ResolvedNode,
  reserved: Reserved,
  draining: boolean,
): Answer | undefined {
  if (execution.requireHardwareIsolation && !(node.kvm && node.cpuVirtualization)) {
    return refusal(422, "request refused", { reason: "unsupported" });
  }
  const memoryBytes = reserved.memoryBytes + capabilities.memoryBytes;
  const isFull =
    reserved.cells >= node.maxCells ||
    memoryBytes > BigInt(node.memoryBytes) ||
    (capabilities.egress.length > 0 && reserved.egressSlots >= node.egressSlots);
  if (isFull) return atCapacity;
  return draining || !isFit(node)
    ? refusal(422, "request refused", { reason: "no_eligible_node" })
    : undefined;
}

function parsedOf(body: Uint8Array): ReturnType<typeof parseExecutionRequest> | string {
  try {
    return parseExecutionRequest(body);
  } catch (error) {
    if (error instanceof JsonError) return error.message;
    throw error;
  }
}

function forbiddenHost(
  { capabilities }: ExecutionRequest,
  { egressHosts }: ResolvedNode,
): string | undefined {
  if (egressHosts === undefined) return undefined;
  return capabilities.egress
    .map((destination) =>
      destination
        .replace(/^https?:\/\//, "")
        .replace(/:\d*$/, "")
        .toLowerCase(),
    )
    .find((host) => !egressHosts.includes(host));
}

function unsupported(detail: string): Answer {
  return refusal(422, "request refused", { reason: "unsupported", detail });
}

function refused(answer: Answer): Read {
  return { kind: "refused", answer };
}
