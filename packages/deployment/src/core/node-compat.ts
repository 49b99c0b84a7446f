/** Which of Node's modules a Worker may import. The runtime has them only behind a compatibility flag. */

const asyncHooks = "node:async_hooks";

/** Whether the flags give the Worker this module of Node (a name with the `node:` prefix). */
export function mayImport(name: string, flags: readonly string[]): boolean {
  if (flags.includes("nodejs_compat") || flags.includes("nodejs_compat_v2")) return true;
  return name === asyncHooks && flags.includes("nodejs_als");
}

/** What to do about a module of Node that the flags do not give. */
export function flagAdvice(name: string): string {
  const als = name === asyncHooks ? " (or nodejs_als)" : "";
  return `${name} is there only with the flag nodejs_compat${als}: add it to compatibility_flags`;
}
