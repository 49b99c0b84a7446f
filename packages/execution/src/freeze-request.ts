// From what a caller wants to the exact bytes that every try sends. What a router or dispatcher would refuse is refused here,
// where no id is used up by it.
import { z } from "zod";
import type { ExecutionRequestInput } from "./core/execution-request.ts";
import { parseJson, stringifyJson } from "./core/json.ts";
import { parseExecutionRequest } from "./core/parse-request.ts";
import { shownUrl } from "./core/shown.ts";
import { ExecutionOptionError, ExecutionRequestError } from "./errors.ts";
import type { FrozenRequest } from "./submission.ts";

/** The most that a router takes. */
const maxRequestBytes = 65_536;
const maxPinCharacters = 1_024;

/** Freezes a request that was built here: checked as a dispatcher checks it, and written as JSON once. */
export function freezeRequest(input: ExecutionRequestInput, pin: string | undefined): FrozenRequest {
  const bytes = new TextEncoder().encode(stringifyJson(withoutDefaults(input)));
  const parsed = parseExecutionRequest(bytes);
  if (parsed.kind === "malformed") throw new ExecutionRequestError(parsed.problem);
  const { request } = parsed;
  if (parsed.kind !== "valid") {
    const listed = parsed.problems.map(({ code, field }) => `${field}: ${code}`).join(", ");
    throw new ExecutionRequestError(listed, parsed.problems);
  }
  const { id, apiVersion } = request;
  return { bytes: checkedSize(bytes), request, id, apiVersion, pin: checkedPin(pin) };
}

const identified = z.object({ id: z.string(), apiVersion: z.string().optional().catch(undefined) });

/**
 * Freezes bytes as they are: those of an earlier submission, or of a request that is newer than this package. Checked is only what
 * a router checks.
 */
export function freezeBytes(given: Uint8Array | string, pin: string | undefined): FrozenRequest {
  const bytes = typeof given === "string" ? new TextEncoder().encode(given) : Uint8Array.from(given);
  const found = identified.safeParse(parseJson(checkedSize(bytes)));
  if (!found.success) throw new ExecutionRequestError("it has no id");
  const parsed = parseExecutionRequest(bytes);
  const request = parsed.kind === "malformed" ? undefined : parsed.request;
  const { id, apiVersion } = found.data;
  return { bytes, request, id, apiVersion, pin: checkedPin(pin) };
}

/** Older dispatchers do not know `allowInsecure` and refuse it even when it is false. */
function withoutDefaults(input: ExecutionRequestInput): unknown {
  if (input?.capabilities?.allowInsecure !== false) return input;
  const { allowInsecure: _, ...capabilities } = input.capabilities;
  return { ...input, capabilities };
}

function checkedSize(bytes: Uint8Array): Uint8Array {
  if (bytes.length > 0 && bytes.length <= maxRequestBytes) return bytes;
  throw new ExecutionRequestError(`it has ${bytes.length} bytes, and a router takes 1 to ${maxRequestBytes}`);
}

/** A backend's origin, exactly as the router's list has it. */
export function checkedPin<P extends string | undefined>(pin: P): P {
  if (pin === undefined || (pin.length <= maxPinCharacters && /^[\x21-\x7e]+$/.test(pin))) return pin;
  throw new ExecutionOptionError(
    "pin",
    `is ${shownUrl(pin)}; give 1 to ${maxPinCharacters} visible ASCII characters, exactly as the router's list has them`,
  );
}
