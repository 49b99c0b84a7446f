/** Conditional request headers. @see RFC 9110 §13 and S3's conditional writes */
import { RequestRefusal } from "../errors.ts";
import type { ObjectHead } from "../store/object-file.ts";
import type { Condition, Outcome } from "../store/object-store.ts";
import { notImplemented, type RequestHead } from "./request-head.ts";

/** The condition of a write. @throws RequestRefusal for what S3 does not take either */
export function writeCondition(head: RequestHead): Condition {
  const ifNoneMatch = head.headers.get("if-none-match");
  const ifMatch = head.headers.get("if-match");
  for (const name of ["if-modified-since", "if-unmodified-since"]) {
    if (head.headers.has(name)) throw notImplemented(`${name} on a write`);
  }
  if (ifNoneMatch !== undefined && ifMatch !== undefined)
    throw notImplemented("If-Match beside If-None-Match");
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() !== "*") throw notImplemented("If-None-Match with anything but * on a write");
    return { kind: "absent" };
  }
  return ifMatch === undefined ? { kind: "none" } : { kind: "etag", etags: strongEtags(ifMatch) };
}

/** Turns a condition that did not hold into S3's refusal. */
export function requireApplied(outcome: Outcome): void {
  if (outcome.kind === "applied") return;
  if (outcome.kind === "missing") throw noSuchKey();
  throw new RequestRefusal(
    412,
    "PreconditionFailed",
    outcome.kind === "exists" ? "The key already has an object." : "The object's ETag is another one.",
  );
}

/** 404 of a key. */
export function noSuchKey(): RequestRefusal {
  return new RequestRefusal(404, "NoSuchKey", "The specified key does not exist.");
}

/** Whether a read must be answered 304. @throws RequestRefusal PreconditionFailed */
export function notModified(request: RequestHead, head: ObjectHead): boolean {
  const { headers } = request;
  const ifMatch = headers.get("if-match");
  const ifNoneMatch = headers.get("if-none-match");
  const modifiedMs = Math.floor(head.modifiedMs / 1000) * 1000;
  const holds = (etags: readonly string[]) => etags.some((etag) => etag === "*" || etag === head.etag);
  if (ifMatch !== undefined) {
    if (!holds(strongEtags(ifMatch))) requireApplied({ kind: "mismatch" });
  } else {
    const since = Date.parse(headers.get("if-unmodified-since") ?? "");
    if (modifiedMs > since) requireApplied({ kind: "mismatch" });
  }
  if (ifNoneMatch !== undefined) return holds(readEtags(ifNoneMatch).map(({ etag }) => etag));
  return modifiedMs <= Date.parse(headers.get("if-modified-since") ?? "");
}

/** What If-Match may be met by: a weak ETag never meets the strong comparison (RFC 9110 §13.1.1). */
function strongEtags(value: string): string[] {
  return readEtags(value).flatMap(({ etag, weak }) => (weak ? [] : [etag]));
}

/** `*`, or a list of ETags without their quotes; S3's clients leave these out at times. A `*` in a list names nothing. */
function readEtags(value: string): { etag: string; weak: boolean }[] {
  if (value.trim() === "*") return [{ etag: "*", weak: false }];
  const found = value.matchAll(/(W\/)?"([^"]*)"|([^\s,"]+)/g);
  return Array.from(found, ([, weak, quoted, bare = ""]) => ({
    etag: quoted ?? bare,
    weak: weak !== undefined,
  })).filter(({ etag }) => etag !== "*");
}
