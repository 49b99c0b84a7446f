import { describe, expect, it } from "vitest";
import {
  BackendError,
  BackendListError,
  CredentialError,
  LedgerAbsentError,
  LedgerPlaceError,
  NoBackendError,
  PlacementError,
  RouterError,
  RouterOptionError,
} from "../src/index.ts";

const cause = new TypeError("below");

describe("an error", () => {
  it.each([
    [
      new RouterOptionError("the limit x must be an integer of 1 or more, not 0", { cause }),
      "RouterOptionError",
      "CELLKIT_ROUTER_OPTION",
      "the limit x must be an integer of 1 or more, not 0",
    ],
    [
      new CredentialError("client", "the client token's file /t is empty", { cause }),
      "CredentialError",
      "CELLKIT_ROUTER_CREDENTIALS",
      "the client token's file /t is empty: every role needs a file of its own with a token of its own, 24 to 4,096 bytes of visible ASCII",
    ],
    [
      new BackendError("http://n", "cannot be connected to", "no", { cause }),
      "BackendError",
      "CELLKIT_ROUTER_BACKEND",
      "http://n cannot be connected to",
    ],
    [
      new LedgerAbsentError("no ledger was ever created at /l", { cause }),
      "LedgerAbsentError",
      "CELLKIT_ROUTER_LEDGER_ABSENT",
      "no ledger was ever created at /l. To create a new one, start one router without --require-existing-ledger",
    ],
    [
      new LedgerAbsentError("there are records at /l, and no mark", { cause, hasRecords: true }),
      "LedgerAbsentError",
      "CELLKIT_ROUTER_LEDGER_ABSENT",
      "there are records at /l, and no mark; one router that is started without --require-existing-ledger does, too",
    ],
    [
      new LedgerPlaceError("no ledger lies at ftp", { cause }),
      "LedgerPlaceError",
      "CELLKIT_ROUTER_LEDGER_PLACE",
      "no ledger lies at ftp",
    ],
    [
      new PlacementError("failed", { cause }),
      "PlacementError",
      "CELLKIT_ROUTER_PLACEMENT",
      "the placement rule failed: mend it; nothing was recorded for the id, and nothing sent",
    ],
    [
      new BackendListError("cells is not found: ENOTFOUND", { cause }),
      "BackendListError",
      "CELLKIT_ROUTER_BACKEND_LIST",
      "cells is not found: ENOTFOUND: which dispatchers there are is not known; mend the name's lookup, or list them",
    ],
    [
      new NoBackendError(0, { cause }),
      "NoBackendError",
      "CELLKIT_ROUTER_NO_BACKEND",
      "no dispatcher is known: look at the list of backends and at the name they are discovered by",
    ],
    [
      new NoBackendError(3, { cause }),
      "NoBackendError",
      "CELLKIT_ROUTER_NO_BACKEND",
      "none of 3 dispatchers is healthy: look at their capacity, and whether they take the backend token",
    ],
  ])("%s has a name, a code, a message and its cause", (error, name, code, message) => {
    expect(error).toBeInstanceOf(RouterError);
    expect(error).toMatchObject({ name, code, message, cause });
  });

  it("says whose token it is, and whether a call may have arrived", () => {
    expect(new CredentialError("client", "x").role).toBe("client");
    expect(new CredentialError(undefined, "x").role).toBeUndefined();
    expect(new BackendError("http://n", "x", "maybe")).toMatchObject({ backend: "http://n", sent: "maybe" });
  });
});
