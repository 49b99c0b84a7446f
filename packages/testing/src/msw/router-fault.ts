import type { CallKind } from "../core/call.ts";
import type { Fault } from "../core/fault.ts";
import { commonFaults, type FaultTable } from "../core/fault-table.ts";
import { flag, needed } from "../core/given.ts";

/** What goes wrong with a call to a mocked router. */
export type RouterFault =
  | Extract<Fault, { kind: keyof typeof commonFaults }>
  /** Of a submission: the router does not know whether its dispatcher has it. Whether it does is `ran`; the id is used up either way. */
  | { readonly kind: "outcome-unknown"; readonly ran: boolean }
  /** Of a submission, read, audit or cancel: the ledger could not be used. Nothing was sent, and the same call may be made again. */
  | { readonly kind: "ownership-unavailable" }
  /** Of a read, audit or cancel: the owner cannot be asked, or does not know the id any more. */
  | { readonly kind: "owner-lost" };

/** The calls that a router serves. */
const served: readonly CallKind[] = ["submit", "read", "audit", "cancel", "prewarm", "capabilities"];

export const routerFaults: FaultTable<RouterFault["kind"]> = {
  served,
  kinds: {
    ...commonFaults,
    "outcome-unknown": { members: { ran: needed(flag) }, calls: ["submit"] },
    "ownership-unavailable": { members: {}, calls: ["submit", "read", "audit", "cancel"] },
    "owner-lost": { members: {}, calls: ["read", "audit", "cancel"] },
  },
};
