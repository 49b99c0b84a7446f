// Names of cells (docs/protocol/signed-requests.md, "Names and ids"): an object id is two halves of 16 bytes, the second an HMAC of the
// first under the key of its class, so that an id of another class is recognised.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { ScopeError } from "../errors.ts";

const scopeForm = /^(?!\.{1,2}$)[A-Za-z0-9_.:$-]{1,255}$/;
const objectIdForm = /^[0-9A-Fa-f]{64}$/;
const halfBytes = 16;

/** Key text of the one namespace that all D1 databases of a fleet share. */
const databaseNamespace = "cells:v1:d1:__D1Database";
/** Class name of D1 databases. */
const databaseClass = "__D1Database";

/** A cell's class and id, as they stand in its scope. */
export interface Scope {
  readonly className: string;
  /** 64 lower-case hex digits. */
  readonly id: string;
}

/** Whether a text may stand where the protocol has a scope: 1 to 255 of `A–Z a–z 0–9 _ - . : $`, not `.` and not `..`. */
export function isScope(text: string): boolean {
  return scopeForm.test(text);
}

/**
 * Reads the scope of a cell, `<Class>:<id>`. Other scopes, such as those of cron cells, are no cell's: see
 * {@link isScope}.
 *
 * @throws ScopeError CELLKIT_PEER_SCOPE when it is no scope, or its last part is no id in lower case
 */
export function parseScope(text: string): Scope {
  if (!isScope(text))
    throw new ScopeError("a scope must be 1 to 255 of A-Z a-z 0-9 _ - . : $, not . and not ..");
  const colon = text.lastIndexOf(":");
  const id = text.slice(colon + 1);
  if (colon < 1 || !objectIdForm.test(id) || id !== id.toLowerCase()) {
    throw new ScopeError(`scope ${text} is not <Class>:<64 lower-case hex digits>`);
  }
  return { className: text.slice(0, colon), id };
}

/**
 * The scope of a cell.
 *
 * @throws ScopeError CELLKIT_PEER_SCOPE when the class name has characters that a scope cannot have, or is too long
 */
export function formatScope({ className, id }: Scope): string {
  const text = `${className}:${id}`;
  if (className === "" || !isScope(text)) {
    throw new ScopeError(`class ${className} cannot stand in a scope: use A-Z a-z 0-9 _ - . : $`);
  }
  return text;
}

/**
 * The key text of a class: which ids belong together.
 *
 * @param script name of the application's script; ignored for D1 databases, which have one namespace in the fleet
 */
export function namespaceKey(script: string, className: string): string {
  if (className === databaseClass) return databaseNamespace;
  return `cells:v1:${Buffer.byteLength(script)}:${script}:${className}`;
}

/** The key of a class, from which ids are made: SHA-256 of {@link namespaceKey}. */
export function classKey(script: string, className: string): Uint8Array {
  return createHash("sha256").update(namespaceKey(script, className)).digest();
}

/** The id of the object of this name: 64 lower-case hex digits. */
export function objectIdFromName(script: string, className: string, name: string): string {
  const key = classKey(script, className);
  return completeId(key, half(key, name));
}

/** The id made of 16 random bytes. @throws ScopeError CELLKIT_PEER_SCOPE unless they are 16 */
export function objectIdFromRandom(script: string, className: string, random: Uint8Array): string {
  if (random.length !== halfBytes) throw new ScopeError(`an id is made of ${halfBytes} random bytes`);
  return completeId(classKey(script, className), random);
}

/**
 * Reads an id in either case and prints it in lower case.
 *
 * @throws ScopeError CELLKIT_PEER_SCOPE when it is no id, or one of another class or script
 */
export function parseObjectId(script: string, className: string, text: string): string {
  if (!objectIdForm.test(text)) throw new ScopeError("an object id is 64 hex digits");
  const bytes = Buffer.from(text, "hex");
  const expected = half(classKey(script, className), bytes.subarray(0, halfBytes));
  if (!timingSafeEqual(expected, bytes.subarray(halfBytes))) {
    throw new ScopeError(`object id ${text.toLowerCase()} is not of class ${className} of script ${script}`);
  }
  return text.toLowerCase();
}

function completeId(key: Uint8Array, first: Uint8Array): string {
  return Buffer.concat([first, half(key, first)]).toString("hex");
}

function half(key: Uint8Array, of: string | Uint8Array): Buffer {
  return createHmac("sha256", key).update(of).digest().subarray(0, halfBytes);
}
