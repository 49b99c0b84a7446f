import { expect, test } from "vitest";
import {
  dialRecords,
  formatRecordsAcceptance,
  formatRecordsOffer,
  listenRecords,
  parseRecordsAcceptance,
  parseRecordsOffer,
} from "../../src/core/records-offer.ts";
import { nonceOf } from "../support/signed.ts";

const nothing = { offer: false, insist: false };
const asks = { offer: true, insist: false };
const insists = { offer: true, insist: true };

test.each([
  ["off", "do", false, nothing],
  ["off", "rpc", true, nothing],
  ["off", "cluster", true, undefined],
  ["offered", "do", false, asks],
  ["offered", "do", true, insists],
  ["offered", "cluster", false, insists],
  ["required", "do", false, insists],
  ["required", "rpc", true, insists],
  ["required", "cluster", false, insists],
] as const)(
  "a dialler with records %s, kind %s, peer advertises %s",
  (mode, kind, peerHasRecords, decision) => {
    expect(dialRecords({ mode, kind, peerHasRecords })).toEqual(decision);
  },
);

test.each([
  ["off", "do", true, true, "plain"],
  ["off", "do", false, false, "plain"],
  ["off", "cluster", true, true, "refuse"],
  ["offered", "do", true, false, "records"],
  ["offered", "do", false, false, "plain"],
  ["offered", "do", false, true, "refuse"],
  ["offered", "cluster", false, false, "refuse"],
  ["offered", "cluster", true, false, "records"],
  ["required", "rpc", true, false, "records"],
  ["required", "rpc", false, false, "refuse"],
  ["required", "do", false, true, "refuse"],
] as const)(
  "a listener with records %s, kind %s, offered %s, source advertises %s: %s",
  (mode, kind, offered, sourceHasRecords, decision) => {
    expect(listenRecords({ mode, kind, offered, sourceHasRecords })).toBe(decision);
  },
);

test("offer and acceptance are read as they are written", () => {
  const [nonce, proof] = [nonceOf(5), "0f".repeat(32)];
  expect(parseRecordsOffer(formatRecordsOffer(nonce))).toBe("offer");
  expect(parseRecordsAcceptance(formatRecordsAcceptance(nonce, proof))).toEqual({
    unproven: formatRecordsOffer(nonce),
    proof,
  });
});

test.each([
  [undefined, "none"],
  ["", "none"],
  ["records-2; nonce=1", "none"],
  ["records-10; nonce=1", "none"],
  ["records-1", "malformed"],
  ["records-1;nonce=1", "malformed"],
  [`records-1; nonce=${nonceOf(1).toUpperCase()}A`, "malformed"],
  [`${formatRecordsOffer(nonceOf(1))}; proof=1`, "malformed"],
  [`${formatRecordsOffer(nonceOf(1))}\n`, "malformed"],
] as const)("offer %j is %s", (value, form) => {
  expect(parseRecordsOffer(value)).toBe(form);
});

test.each([
  "",
  "records-1",
  formatRecordsOffer(nonceOf(1)),
  `${formatRecordsAcceptance(nonceOf(1), "0f".repeat(32))} `,
])("%j is no acceptance", (value) => {
  expect(parseRecordsAcceptance(value)).toBeUndefined();
});
