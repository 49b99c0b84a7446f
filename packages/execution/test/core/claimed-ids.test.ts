import { expect, test } from "vitest";
import { ClaimedIds } from "../../src/core/claimed-ids.ts";

test("ids are remembered up to a count, and what was told of last is kept", () => {
  const ids = new ClaimedIds(2);
  for (const id of ["a", "b", "a", "c"]) ids.add(id);
  expect(["a", "b", "c"].filter((id) => ids.has(id))).toEqual(["a", "c"]);
});
