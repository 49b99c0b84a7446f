// The path of a cancellation: `/peer/abort/<scope, percent-encoded>/<request id>` (spec B5, A5).

import { isScope } from "./core/scope.ts";
import { abortPrefix } from "./wire.ts";

/** The path that cancels a call: every byte of the scope that is no letter or digit is percent-encoded. */
export function abortTarget(scope: string, requestId: string): string {
  const encoded = scope.replace(/[^A-Za-z0-9]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return `${abortPrefix}${encoded}/${requestId}`;
}

/** What a cancellation names, or the text of the refusal. */
export function parseAbortTarget(target: string): { scope: string; requestId: string } | string {
  const path = target.slice(abortPrefix.length);
  const slash = path.lastIndexOf("/");
  if (slash < 0) return "invalid abort target";
  const scope = decode(path.slice(0, slash));
  if (scope === undefined) return "invalid abort target";
  if (!isScope(scope)) return "invalid abort scope";
  const id = path.slice(slash + 1);
  if (!/^[0-9A-Fa-f]+$/.test(id)) return "invalid request id";
  const digits = id.toLowerCase().replace(/^0+/, "");
  if (digits.length > 32) return "invalid request id";
  return { scope, requestId: digits.padStart(32, "0") };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
