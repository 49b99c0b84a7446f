/**
 * `fleet/peer-auth-next.json`: how far the rotation of the fleet key is. Ours: other readers of the protocol do not know
 * it. The keys that hold follow from its phase:
 *
 * | phase    | signs    | accepted       | `fleet/peer-auth.json` |
 * | -------- | -------- | -------------- | ---------------------- |
 * | `accept` | previous | previous, next | previous               |
 * | `sign`   | next     | next, previous | previous, then next    |
 * | `retire` | next     | next, previous | next                   |
 * | `done`   | its key  | its key        | any                    |
 *
 * The object stays when a rotation is done, without keys and with the rotation's id: no two contents are ever equal, so
 * that a conditional write that comes late changes nothing.
 */
import { z } from "zod";
import { FleetKey } from "./core/fleet-key.ts";
import { KeyRotationError } from "./errors.ts";

/** Object key of the rotation, under the fleet's prefix. */
export const keyRotationKey = "fleet/peer-auth-next.json";

/** A rotation under way, or the trace of one that is done. */
export type KeyRotation =
  | {
      readonly phase: "accept" | "sign" | "retire";
      /** Random, 32 hex digits. */
      readonly id: string;
      readonly next: FleetKey;
      readonly previous: FleetKey;
    }
  | { readonly phase: "done"; readonly id: string };

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));

const schema = z.discriminatedUnion("phase", [
  z.strictObject({
    version: z.literal(1),
    phase: z.enum(["accept", "sign", "retire"]),
    rotation: hex(32),
    key: hex(64),
    previous: hex(64),
  }),
  z.strictObject({ version: z.literal(1), phase: z.literal("done"), rotation: hex(32) }),
]);

/** Reads the object. @throws KeyRotationError (CELLKIT_PEER_KEY_ROTATION); the message holds no part of the text */
export function parseKeyRotation(text: string): KeyRotation {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Without its cause: V8 quotes the text, which is a secret.
    throw invalid("is not JSON");
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw invalid(`has a bad ${String(parsed.error.issues[0]?.path[0] ?? "member")}`);
  const { data } = parsed;
  if (data.phase === "done") return { phase: "done", id: data.rotation };
  const next = new FleetKey(Buffer.from(data.key, "hex"));
  const previous = new FleetKey(Buffer.from(data.previous, "hex"));
  if (next.equals(previous)) throw invalid("replaces a key by itself");
  return { phase: data.phase, id: data.rotation, next, previous };
}

/** The object's text. */
export function formatKeyRotation(rotation: KeyRotation): string {
  const { phase, id } = rotation;
  if (phase === "done") return JSON.stringify({ version: 1, phase, rotation: id });
  return JSON.stringify({
    version: 1,
    phase,
    rotation: id,
    key: hexOf(rotation.next),
    previous: hexOf(rotation.previous),
  });
}

function hexOf(key: FleetKey): string {
  return Buffer.from(key.reveal()).toString("hex");
}

function invalid(problem: string): KeyRotationError {
  return new KeyRotationError(
    `${keyRotationKey} ${problem}; it is not replaced by itself: restore or remove it`,
  );
}
