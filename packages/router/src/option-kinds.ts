// Kinds of options that the schema of a router is made of.
import { LedgerOptionError, parseLedgerUrl } from "@cellkit/ledger";
import { z } from "zod";
import { type Discovery, parseDiscovery } from "./backend/backend-list.ts";
import { parseOrigin, printableAddress } from "./core/origin.ts";

/** What every variable begins with. */
export const prefix = "CELLKIT_ROUTER_";
/** The heading of tokens in `--help`. */
export const tokenSection = "Tokens";

/** A list with commas. Its order counts: every replica starts its walk for a new owner from the same place. */
export function originList() {
  return z.string().transform((text, context): readonly string[] => {
    const refuse = (part: string, problem: string) =>
      context.addIssue({ code: "custom", message: `${printableAddress(part)} ${problem}` });
    const origins = text.split(",").flatMap((part) => {
      const parsed = parseOrigin(part.trim());
      if ("origin" in parsed) return [parsed.origin];
      refuse(part, `is ${parsed.problem}`);
      return [];
    });
    // Somebody who meant another one would have one dispatcher less than they think.
    for (const origin of new Set(origins.filter((each, index) => origins.indexOf(each) < index)))
      refuse(origin, "stands there twice: each dispatcher is listed once, so correct it, or take it out");
    return origins;
  });
}

/** The address of a ledger, which may hold a password: no message shows anything of it. */
export function ledgerUrl() {
  return z.string().superRefine((text, context) => {
    try {
      parseLedgerUrl(text);
    } catch (error) {
      if (!(error instanceof LedgerOptionError)) throw error;
      context.addIssue({ code: "custom", message: error.message });
    }
  });
}

/** A DNS name, with a port or without. */
export function discoveryName() {
  return z.string().transform((text, context): Discovery => {
    try {
      return parseDiscovery(text);
    } catch {
      context.addIssue({ code: "custom", message: "must be NAME or NAME:PORT" });
      return z.NEVER;
    }
  });
}

/** A file with one token. */
export function tokenFile(description: string, env: string) {
  return z
    .string()
    .min(1)
    .meta({
      description,
      env: `${prefix}${env}`,
      placeholder: "FILE",
      section: tokenSection,
      emptyIsUnset: true,
    });
}

/** A flag of the original's that this router refuses, with the reason. */
export function refusedFlag(reason: string, env: string) {
  return z
    .string()
    .refine(() => false, { error: reason })
    .optional()
    .meta({
      description: `Refused: ${reason}.`,
      env: `${prefix}${env}`,
      placeholder: "FILE",
      section: tokenSection,
      emptyIsUnset: true,
    });
}
