// The arguments of a method call, as `--data` gives them.
import { z } from "zod";
import type { CallBody } from "./cell-call.ts";
import { CallInputError } from "./errors.ts";

const argumentsSchema = z.array(z.unknown());

/** Reads a JSON list; no data is no arguments. @throws CallInputError (`CELLKIT_CLI_CALL_INPUT`) */
export async function parseArguments(data: CallBody | undefined): Promise<readonly unknown[]> {
  if (data === undefined) return [];
  try {
    return argumentsSchema.parse(JSON.parse(await new Response(data).text()));
  } catch (cause) {
    throw new CallInputError("--data must be a JSON list with --rpc: the method's arguments", { cause });
  }
}
