/** How long ago, in the largest whole unit: `12s`, `5m`, `3h`, `40d`; `future` for a time that has not come. */
export function ageOf(modifiedMs: number, nowMs: number): string {
  const seconds = Math.floor((nowMs - modifiedMs) / 1_000);
  if (seconds < 0) return "future";
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
