// What `cellkit call` can say about a failure that the library, which knows neither the flags nor the deployment, cannot.
import type { FleetStore } from "@cellkit/peer";
import { z } from "zod";
import { CallFailedError, CallInputError, CliError } from "./errors.ts";

/** What a call was, as far as it explains how it failed. */
export interface CallFacts {
  readonly store: FleetStore;
  readonly className: string;
  /** As `--script` gives it. */
  readonly script: string | undefined;
  readonly signal: AbortSignal;
}

const maxPointerBytes = 16 * 1024;
const maxManifestBytes = 1024 * 1024;
const pointerSchema = z.object({ script_name: z.string(), version: z.string() });
const manifestSchema = z.object({ do_classes: z.array(z.string()) });

/**
 * Why no cell of this class can be called: the fleet's deployment has no such class, or is of another script. Undefined when
 * it has, and when the deployment cannot be read: then nobody knows better than the node that refused.
 */
export async function absentClass(facts: CallFacts): Promise<string | undefined> {
  const { store, className, script, signal } = facts;
  const read = async <T>(key: string, maxBytes: number, schema: z.ZodType<T>): Promise<T | undefined> => {
    try {
      const object = await store.get(key, { maxBytes, signal });
      return object && schema.safeParse(JSON.parse(new TextDecoder().decode(object.body))).data;
    } catch {
      // The refusal itself is told all the same.
      return undefined;
    }
  };
  const pointer = await read("deploy/current.json", maxPointerBytes, pointerSchema);
  if (pointer === undefined) return undefined;
  const { script_name: current, version } = pointer;
  if (script !== undefined && script !== current)
    return `the fleet runs the script ${current}, and not ${script}`;
  const manifest = await read(`deploy/${current}/${version}/manifest.json`, maxManifestBytes, manifestSchema);
  if (manifest === undefined || manifest.do_classes.includes(className)) return undefined;
  const classes = manifest.do_classes.join(", ");
  return `no class ${className} in ${current}; it has ${classes === "" ? "none" : classes}`;
}

/**
 * Lets an answer pass, but for a node's own refusal that the deployment explains.
 * @throws CallInputError (`CELLKIT_CLI_CALL_INPUT`)
 */
export async function checkRefusal(response: Response, facts: CallFacts): Promise<void> {
  const refused = response.status === 400 || response.status === 503;
  if (!refused || response.headers.get("cellkit-outcome") !== "not-run") return;
  const reason = await absentClass(facts);
  if (reason === undefined) return;
  await response.body?.cancel();
  throw new CallInputError(reason);
}

/** Where a call was when it failed. */
export interface CallProgress {
  /** `--max-time-ms`, if that is over. */
  readonly overMs: number | undefined;
  /** Nothing was sent to a node yet. */
  readonly unsent: boolean;
}

/** The error that tells most about a failed call; the given one where nothing is to be added. */
export async function explained(error: unknown, facts: CallFacts, progress: CallProgress): Promise<unknown> {
  const { overMs, unsent } = progress;
  if (error instanceof CliError) return error;
  if (overMs !== undefined)
    return new CallFailedError(
      `no whole answer within --max-time-ms ${overMs}; ${unsent ? "nothing was sent to a node" : "the call may have run"}`,
      { cause: error },
    );
  const { code, status } = error as { code?: unknown; status?: unknown };
  if (code === "CELLKIT_PEER_TUNNEL_REFUSED" && status === 401)
    return new CallFailedError(`${(error as Error).message}; cellkit diagnose tells which`, { cause: error });
  if (code !== "CELLKIT_PEER_RPC_FAILED") return error;
  const reason = await absentClass(facts);
  return reason === undefined ? error : new CallInputError(reason, { cause: error });
}
