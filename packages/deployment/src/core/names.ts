/** The names that a deployment is made of: what each may look like, and why. */
import { z } from "zod";

/**
 * A script's name: 1 to 63 of `a-z 0-9 _ -`, not starting with `-`, as Wrangler has it. It is a segment of bucket keys
 * and part of every cell's id.
 */
export const scriptName = z
  .string()
  .regex(
    /^[a-z0-9_][a-z0-9_-]{0,62}$/,
    "a script's name has 1 to 63 of a-z, 0-9, _ and -, and does not start with -",
  );

/** What the entry module of a node, which stands in front of the application's main module, exports under its own names. */
export const reservedExports = {
  control: "CellkitControl",
  peer: "CellkitPeer",
  public: "CellkitPublic",
} as const;

/** Modules that a node puts beside the application's. */
export const reservedModules = {
  entry: "cellkit-entry.js",
  runtime: "cellkit-runtime.js",
  peer: "cellkit-peer.js",
} as const;

/** Names that no class of cells may have: the entry module exports something else under each of them. */
const takenExports: readonly string[] = [...Object.values(reservedExports), "default"];

const takenModules: readonly string[] = [...Object.values(reservedModules), "manifest.json"];

/** The name of an exported class: an ASCII identifier, at most 128 characters (it is the first half of a cell's scope). */
export const className = z
  .string()
  .regex(/^[A-Za-z_$][A-Za-z0-9_$]{0,127}$/, "a class name is an identifier of at most 128 characters")
  .refine((name) => !takenExports.includes(name), {
    error: ({ input }) =>
      `a class of cells cannot be named ${input}, which a node needs for itself: rename it`,
  });

/** The name of a binding or variable, a member of the Worker's `env`: an ASCII identifier, at most 128 characters. */
export const bindingName = z
  .string()
  .regex(/^[A-Za-z_$][A-Za-z0-9_$]{0,127}$/, "a binding's name is an identifier of at most 128 characters")
  .refine((name) => name !== "__proto__", "a binding cannot be named __proto__");

/** A calendar day as `YYYY-MM-DD`. */
export const calendarDay = z.iso.date("a compatibility date looks like 2026-11-01");

/** A compatibility flag of the runtime, such as `nodejs_compat`. Which ones exist is the runtime's knowledge. */
export const compatibilityFlag = z
  .string()
  .regex(/^[a-z0-9_]{1,128}$/, "a compatibility flag has 1 to 128 of a-z, 0-9 and _");

/**
 * A module's name: a relative path of segments of `A-Z a-z 0-9 _ . -`, none of them `.` or `..`, at most 255 characters.
 * It is the end of a bucket key and a name in workerd's configuration. `manifest.json` and {@link reservedModules} are taken.
 */
export const moduleName = z
  .string()
  .max(255, "a module's name has at most 255 characters")
  .regex(
    /^(?!\.\.?(\/|$))[A-Za-z0-9_.-]+(\/(?!\.\.?(\/|$))[A-Za-z0-9_.-]+)*$/,
    "a module's name is a relative path of A-Z, a-z, 0-9, _, . and - without . and .. as segments",
  )
  .refine((name) => !takenModules.includes(name), { error: ({ input }) => `the name ${input} is taken` });

/** The text of a version: 16 lower-case hexadecimal digits. */
export const versionText = z.string().regex(/^[0-9a-f]{16}$/, "a version has 16 hexadecimal digits");
