// Which cell is meant, and which script's.

import { z } from "zod";
import { formatScope, objectIdFromName, parseObjectId } from "./core/scope.ts";
import { NoScriptError } from "./errors.ts";
import type { FleetStore } from "./fleet-store.ts";

/** A Durable Object, by the name its id is made from, or by its id (64 hex digits). */
export type CellAddress =
  | { readonly className: string; readonly name: string }
  | { readonly className: string; readonly id: string };

/** A cell as the protocol names it. */
export interface ResolvedCell {
  readonly scope: string;
  readonly name: string | undefined;
}

/** @throws ScopeError (CELLKIT_PEER_SCOPE) for an id of another class or script, or a class name that cannot be */
export function resolveCell(script: string, cell: CellAddress): ResolvedCell {
  const { className } = cell;
  if ("name" in cell) {
    const id = objectIdFromName(script, className, cell.name);
    return { scope: formatScope({ className, id }), name: cell.name };
  }
  return {
    scope: formatScope({ className, id: parseObjectId(script, className, cell.id) }),
    name: undefined,
  };
}

const pointerKey = "deploy/current.json";
const maxPointerBytes = 16 * 1024;
const pointer = z.object({ script_name: z.string().min(1).max(255) });

/**
 * Name of the script that the fleet runs, as `deploy/current.json` tells.
 * @throws NoScriptError (CELLKIT_PEER_NO_SCRIPT), and what the store throws
 */
export async function currentScript(store: FleetStore, signal?: AbortSignal): Promise<string> {
  const object = await store.get(pointerKey, { maxBytes: maxPointerBytes, signal });
  if (object === undefined) throw new NoScriptError("is not there: deploy an application first");
  try {
    return pointer.parse(JSON.parse(new TextDecoder().decode(object.body))).script_name;
  } catch (cause) {
    throw new NoScriptError("names no script: pass the name of the script", { cause });
  }
}
