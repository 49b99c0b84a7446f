/**
 * Which of Node's modules a Worker may import. The runtime has them behind flags that its compatibility date may set
 * (tried with workerd 1.20261117.1, flag by flag, on both sides of the date).
 */

/** From this compatibility date on, all of Node's modules are there unless `no_nodejs_compat` takes them away. */
const defaultSince = "2026-08-04";

/** The one module that has a flag of its own, and that no flag takes away from {@link defaultSince} on. */
const asyncHooks = "node:async_hooks";

/** What decides about the runtime's modules: a part of the Worker's configuration. */
export interface Compatibility {
  /** `YYYY-MM-DD` */
  readonly compatibility_date: string;
  readonly compatibility_flags: readonly string[];
}

/** Whether the Worker has this module of Node (a name with the `node:` prefix). */
export function mayImport(name: string, compatibility: Compatibility): boolean {
  const { compatibility_date: date, compatibility_flags: flags } = compatibility;
  const byDefault = date >= defaultSince;
  if (name === asyncHooks && (byDefault || flags.includes("nodejs_als"))) return true;
  if (flags.includes("no_nodejs_compat")) return false;
  // nodejs_compat_v2 is what the flag was called for a while.
  return byDefault || flags.includes("nodejs_compat") || flags.includes("nodejs_compat_v2");
}

/** What to do about a module of Node that the Worker does not have. */
export function flagAdvice(name: string): string {
  const als = name === asyncHooks ? " (or nodejs_als)" : "";
  return `${name} is there only with the compatibility flag nodejs_compat${als}, or with a compatibility_date from ${defaultSince} on`;
}
