import { expect, test } from "vitest";
import * as errors from "../src/errors.ts";

const cause = Object.assign(new Error("inner"), { code: "EADDRINUSE" });
const options = { cause };

const rows: readonly (readonly [errors.PeerError, string, string, string])[] = [
  [new errors.PeerOptionError("windowMs", "is 0", options), "PeerOptionError", "OPTION", "windowMs is 0"],
  [new errors.FleetKeyError("is not JSON", options), "FleetKeyError", "FLEET_KEY", "is not JSON"],
  [new errors.ScopeError("no scope", options), "ScopeError", "SCOPE", "no scope"],
  [
    new errors.TunnelHeadError("no status line", options),
    "TunnelHeadError",
    "TUNNEL_HEAD",
    "close the connection",
  ],
  [
    new errors.PeerRecordError("truncated", "cut", options),
    "PeerRecordError",
    "RECORD",
    "destroy the connection",
  ],
  [new errors.PeerUnreachableError("a:1", "refused", options), "PeerUnreachableError", "UNREACHABLE", "a:1"],
  [new errors.PeerVersionError("2", 5, options), "PeerVersionError", "VERSION", '"2"'],
  [
    new errors.TunnelRefusedError("a:1", { status: 401, staleOwner: false, dateMs: undefined }, options),
    "TunnelRefusedError",
    "TUNNEL_REFUSED",
    "401",
  ],
  [new errors.RecordsMissingError("a:1", options), "RecordsMissingError", "RECORDS_MISSING", "a:1"],
  [new errors.TunnelLostError("reset", options), "TunnelLostError", "TUNNEL_LOST", "reset"],
  [
    new errors.NodeRecordError("nodes/a.json", "is not JSON", options),
    "NodeRecordError",
    "NODE_RECORD",
    "nodes/a",
  ],
  [new errors.NodeRecordLostError("a", options), "NodeRecordLostError", "NODE_RECORD_LOST", "node a"],
  [
    new errors.NodeRecordUncertainError("a", options),
    "NodeRecordUncertainError",
    "NODE_RECORD_UNCERTAIN",
    "node a",
  ],
  [new errors.NoLiveNodeError(2, 5, options), "NoLiveNodeError", "NO_LIVE_NODE", "2 live"],
  [new errors.FleetKeyMissingError("x.json", options), "FleetKeyMissingError", "FLEET_KEY_MISSING", "x.json"],
  [
    new errors.FleetKeyUncertainError("x.json", options),
    "FleetKeyUncertainError",
    "FLEET_KEY_UNCERTAIN",
    "x.json",
  ],
  [new errors.KeyRotationError("moved", options), "KeyRotationError", "KEY_ROTATION", "moved"],
  [
    new errors.KeyRotationPendingError([{ node: "a", reason: "signs with the old key" }], options),
    "KeyRotationPendingError",
    "KEY_ROTATION_PENDING",
    "a signs with the old key",
  ],
  [new errors.RpcFailure("failed", options), "RpcFailure", "RPC_FAILED", "failed"],
  [new errors.PeerNoAnswerError("a:1", "reset", options), "PeerNoAnswerError", "NO_ANSWER", "a:1"],
  [new errors.StaleOwnerError("a:1", "moved", options), "StaleOwnerError", "STALE_OWNER", "a:1"],
  [new errors.NoScriptError("is missing", options), "NoScriptError", "NO_SCRIPT", "is missing"],
  [
    new errors.IrregularAnswerError("its status is 999", options),
    "IrregularAnswerError",
    "IRREGULAR_ANSWER",
    "999",
  ],
  [new errors.RoadAliasError("no alias", options), "RoadAliasError", "ROAD_ALIAS", "no alias"],
];

test.each(rows)("%s has its name, code, message and cause", (error, name, code, part) => {
  expect(error).toBeInstanceOf(errors.PeerError);
  expect(error).toMatchObject({ name, code: `CELLKIT_PEER_${code}`, cause });
  expect(error.message).toContain(part);
});

test("every class has a row, and every code is its own", () => {
  const classes = Object.keys(errors).filter((name) => name !== "PeerError");
  expect(rows.map(([, name]) => name).sort()).toEqual(classes.sort());
  expect(new Set(rows.map(([, , code]) => code)).size).toBe(rows.length);
});
