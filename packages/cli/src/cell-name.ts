// A cell as users write it.
import type { CellAddress } from "@cellkit/peer";

/**
 * `CLASS:NAME`, or `CLASS:ID` with an id of 64 hex digits; undefined for anything else. What comes after the first colon is
 * the name, whatever it holds.
 */
export function parseCell(text: string): CellAddress | undefined {
  const colon = text.indexOf(":");
  const className = text.slice(0, colon);
  const rest = text.slice(colon + 1);
  if (colon < 1 || rest === "" || !/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(className)) return undefined;
  return /^[0-9a-fA-F]{64}$/.test(rest) ? { className, id: rest } : { className, name: rest };
}
