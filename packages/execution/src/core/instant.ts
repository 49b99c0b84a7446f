// RFC 3339 times as receipts carry them, compared without losing digits of the fraction.
// Source: RFC 3339, section 5.6. Second 60 is accepted, as leap seconds are.

/** A point in time: whole seconds since the Unix epoch, and the digits of the fraction. */
export interface Instant {
  readonly seconds: number;
  readonly fraction: string;
}

const form = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** The time in a text, or undefined when it is none. */
export function parseInstant(text: string): Instant | undefined {
  const found = form.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1, 7).map(Number);
  const offsetHour = Number(found[9] ?? 0);
  const offsetMinute = Number(found[10] ?? 0);
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const offset = (found[8] === "-" ? -1 : 1) * (offsetHour * 3600 + offsetMinute * 60);
  const seconds = daysSinceEpoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
  return { seconds, fraction: found[7] ?? "" };
}

/** Below 0 when `a` is earlier, 0 when both are the same time, above 0 when `a` is later. */
export function compareInstants(a: Instant, b: Instant): number {
  if (a.seconds !== b.seconds) return a.seconds - b.seconds;
  const digits = Math.max(a.fraction.length, b.fraction.length);
  const [left, right] = [a.fraction.padEnd(digits, "0"), b.fraction.padEnd(digits, "0")];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** Days from 1970-01-01 in the Gregorian calendar, counted in years that begin with March. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const monthFromMarch = (month + 9) % 12;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  return marchYear * 365 + leapDays + Math.floor((153 * monthFromMarch + 2) / 5) + day - 1 - 719_468;
}
