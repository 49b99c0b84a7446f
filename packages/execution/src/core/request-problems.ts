// What is wrong with a well-formed request, as a dispatcher would tell it (execution API, sections 11.3 and 11.4): all problems,
// in the order in which they are looked for.
import { type ExecutionRequest, requestVersions } from "./execution-request.ts";
import { isHarnessValid } from "./harness-rules.ts";
import { isHash } from "./hashes.ts";
import { isBlank } from "./white-space.ts";

/** What a rule calls its breach. `unsupported` is what this runtime does not do (422), the others are no request (400). */
export type RequestProblemCode =
  | "unsupported_version"
  | "invalid_harness"
  | "missing_identity"
  | "invalid_forge"
  | "mutable_reference"
  | "invalid_input_name"
  | "duplicate_input_name"
  | "invalid_limit"
  | "invalid_tool_alias"
  | "duplicate_tool_alias"
  | "undeclared_invocation"
  | "invalid_invocation_argument"
  | "invalid_egress"
  | "unsupported";

/** One breach: which rule, and which member of the request, such as `inputs[0].name`. */
export interface RequestProblem {
  readonly code: RequestProblemCode;
  readonly field: string;
}

/** All problems of a request (400 at a dispatcher), in the order in which a dispatcher lists them; empty when there is none. */
export function validateExecutionRequest(request: ExecutionRequest): RequestProblem[] {
  return [
    ...versionProblems(request),
    ...identityProblems(request),
    ...sourceProblems(request),
    ...request.inputs.flatMap(inputProblems),
    ...request.tools.flatMap(toolProblems),
    ...invocationProblems(request),
    ...egressProblems(request),
    ...limitProblems(request),
  ];
}

const maxInputs = 16;
const maxInputBytes = 65_536n;

/** What a well-formed request asks for that the runtime does not do (422 at a dispatcher); empty when it does it all. */
export function unsupportedCombinations(request: ExecutionRequest): RequestProblem[] {
  const { inputs, tools, harness, forge, capabilities } = request;
  const unsupported = (when: boolean, field: string) => found(when, "unsupported", field);
  const total = inputs.reduce((sum, { bytes }) => sum + bytes, 0n);
  const closure = tools.findIndex((tool) => tool.closure != null);
  // A harness is a closure that the rules of its version already bind: it has one egress entry, and needs it.
  const alone = forge == null && inputs.length === 0 && capabilities.egress.length === 0;
  return [
    ...unsupported(inputs.length > maxInputs || total > maxInputBytes, "inputs"),
    ...unsupported(inputs.length > 0 && capabilities.workspace === "none", "capabilities.workspace"),
    ...unsupported(tools.length > 1 && harness == null, "tools"),
    ...unsupported(closure >= 0 && harness == null && !alone, `tools[${closure}].closure`),
  ];
}

function versionProblems(request: ExecutionRequest): RequestProblem[] {
  const known: readonly string[] = requestVersions;
  return [
    ...found(!known.includes(request.apiVersion), "unsupported_version", "apiVersion"),
    ...found(!isHarnessValid(request), "invalid_harness", "harness"),
  ];
}

function identityProblems({ id, workload }: ExecutionRequest): RequestProblem[] {
  return [
    ...found(isBlank(id), "missing_identity", "id"),
    ...found(isBlank(workload.id), "missing_identity", "workload.id"),
    ...found(isBlank(workload.caller), "missing_identity", "workload.caller"),
  ];
}

function sourceProblems(request: ExecutionRequest): RequestProblem[] {
  const { mote, forge, execution, invocation, tools } = request;
  if ((mote == null) === (forge == null)) return found(true, "invalid_forge", "mote");
  if (mote != null) return found(!isHash(mote.hash), "mutable_reference", "mote.hash");
  return [
    ...found(isBlank(forge?.task ?? ""), "invalid_forge", "forge.task"),
    ...found(execution.lane !== "agent", "invalid_forge", "execution.lane"),
    ...found(invocation != null, "invalid_forge", "invocation"),
    ...found(tools.length > 0, "invalid_forge", "tools"),
  ];
}

type Input = ExecutionRequest["inputs"][number];

function inputProblems({ name, hash, mediaType, bytes }: Input, index: number, all: readonly Input[]) {
  const at = `inputs[${index}]`;
  const named = /^[a-z0-9._-]{1,64}$/.test(name) && name !== "." && name !== "..";
  return [
    ...found(!named, "invalid_input_name", `${at}.name`),
    ...found(!isHash(hash), "mutable_reference", `${at}.hash`),
    ...found(isBlank(mediaType), "invalid_limit", `${at}.mediaType`),
    ...found(bytes === 0n, "invalid_limit", `${at}.bytes`),
    ...found(
      isFirstOfSeveral(
        name,
        index,
        all.map((input) => input.name),
      ),
      "duplicate_input_name",
      `${at}.name`,
    ),
  ];
}

type Tool = ExecutionRequest["tools"][number];

function toolProblems({ alias, hash, closure }: Tool, index: number, all: readonly Tool[]) {
  const at = `tools[${index}]`;
  return [
    ...found(!alias.startsWith("/"), "invalid_tool_alias", `${at}.alias`),
    ...found(!isHash(hash), "mutable_reference", `${at}.hash`),
    ...found(closure != null && !isHash(closure.hash), "mutable_reference", `${at}.closure.hash`),
    ...found(
      isFirstOfSeveral(
        alias,
        index,
        all.map((tool) => tool.alias),
      ),
      "duplicate_tool_alias",
      `${at}.alias`,
    ),
  ];
}

function invocationProblems({ invocation, tools }: ExecutionRequest): RequestProblem[] {
  if (invocation == null) return [];
  const declared = tools.some((tool) => tool.alias === invocation.alias);
  return [
    ...found(!declared, "undeclared_invocation", "invocation.alias"),
    ...invocation.args.flatMap((argument, index) =>
      found(argument.includes("\0"), "invalid_invocation_argument", `invocation.args[${index}]`),
    ),
  ];
}

function egressProblems({ capabilities }: ExecutionRequest): RequestProblem[] {
  const form = capabilities.allowInsecure
    ? /^https?:\/\/[A-Za-z0-9.[\]-]+(?::[0-9]+)?$/
    : /^https:\/\/[A-Za-z0-9.:-]+$/;
  return capabilities.egress.flatMap((destination, index) =>
    found(!form.test(destination), "invalid_egress", `capabilities.egress[${index}]`),
  );
}

function limitProblems({ capabilities }: ExecutionRequest): RequestProblem[] {
  return (["timeoutMs", "memoryBytes", "outputBytes"] as const).flatMap((limit) =>
    found(capabilities[limit] === 0n, "invalid_limit", `capabilities.${limit}`),
  );
}

function found(when: boolean, code: RequestProblemCode, field: string): RequestProblem[] {
  return when ? [{ code, field }] : [];
}

function isFirstOfSeveral(name: string, index: number, names: readonly string[]): boolean {
  return names.indexOf(name) === index && names.lastIndexOf(name) !== index;
}
