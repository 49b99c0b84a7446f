// From the bytes of a body to a request, as a dispatcher reads it.
import { type ExecutionRequest, executionRequestSchema } from "./execution-request.ts";
import { parseJson } from "./json.ts";
import {
  type RequestProblem,
  unsupportedCombinations,
  validateExecutionRequest,
} from "./request-problems.ts";
import { describeIssues } from "./schema-issues.ts";

/** What a body is: a request, a well-formed one with problems, or one that does not have the shape of a request. */
export type ParsedRequest =
  | { readonly kind: "valid"; readonly request: ExecutionRequest }
  | {
      readonly kind: "invalid";
      readonly request: ExecutionRequest;
      readonly problems: readonly RequestProblem[];
    }
  | {
      readonly kind: "unsupported";
      readonly request: ExecutionRequest;
      readonly problems: readonly RequestProblem[];
    }
  | { readonly kind: "malformed"; readonly problem: string };

/**
 * Reads a request body: strict JSON (no member twice), the shape with no unknown member, the rules of its version, then
 * what the runtime does not do.
 *
 * @throws {@link JsonError} (`CELLKIT_EXECUTION_JSON`) when the body is no JSON.
 */
export function parseExecutionRequest(body: Uint8Array | string): ParsedRequest {
  const parsed = executionRequestSchema.safeParse(parseJson(body));
  if (!parsed.success) return { kind: "malformed", problem: describeIssues(parsed.error) };
  const request = parsed.data;
  const problems = validateExecutionRequest(request);
  if (problems.length > 0) return { kind: "invalid", request, problems };
  const unsupported = unsupportedCombinations(request);
  if (unsupported.length > 0) return { kind: "unsupported", request, problems: unsupported };
  return { kind: "valid", request };
}
