import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { allowedRoutes, findRoute } from "../../src/core/allowlist.ts";
import { backendVectors, executionIdVectors, refusedTargets, routeVectors } from "../support/vectors.ts";

const modes = {
  parent: allowedRoutes("parent"),
  execution: allowedRoutes("execution"),
  "execution, strict ids": allowedRoutes("execution", "strict"),
};
const allVectors = [...routeVectors.parent, ...routeVectors.execution, ...routeVectors.scoped];
const fits = (mode: keyof typeof modes, method: string, path: string) =>
  findRoute(modes[mode], method, path) !== undefined;

describe("the vectors", () => {
  it.each(routeVectors.parent)(
    "parent mode: $method $path, allowed $allowed",
    ({ method, path, allowed }) => {
      expect(fits("parent", method, path)).toBe(allowed);
    },
  );

  it.each(routeVectors.execution)(
    "execution mode with strict ids: $method $path, allowed $allowed",
    ({ method, path, allowed }) => expect(fits("execution, strict ids", method, path)).toBe(allowed),
  );

  it("with the router's ids, execution mode differs in just what the grammar of ids says", () => {
    const different = routeVectors.execution.filter(
      ({ method, path, allowed }) => fits("execution", method, path) !== allowed,
    );
    expect(different.map(({ path }) => path)).toEqual(["/v1/executions/-lead", "/v1/executions/a:b"]);
  });

  it.each(routeVectors.scoped)("scoped operations pass in no mode: $method $path", ({ method, path }) => {
    for (const mode of ["parent", "execution", "execution, strict ids"] as const) {
      if (path.startsWith("/v1/scoped/")) expect(fits(mode, method, path)).toBe(false);
    }
  });

  it.each(refusedTargets)("%s fits nothing, whatever the method", (target) => {
    for (const mode of ["parent", "execution", "execution, strict ids"] as const)
      for (const method of ["GET", "POST", "DELETE"]) expect(fits(mode, method, target)).toBe(false);
  });

  it.each(executionIdVectors)("id $id: router $routerAccepts, strict $edgeAccepts", (vector) => {
    const { id, routerAccepts, edgeAccepts } = vector;
    for (const [method, rest] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/cancel"],
      ["GET", "/audit"],
    ] as const) {
      const target = `/v1/executions/${id}${rest}`;
      expect(fits("execution", method, target)).toBe(routerAccepts);
      expect(fits("execution, strict ids", method, target)).toBe(edgeAccepts);
    }
  });
});

describe("ids", () => {
  it.each([
    ["a", 512, 128],
    ["A.b_c-9", 512, 128],
  ])("made of %s may be as long as the grammar says", (part, router, strict) => {
    const id = (length: number) => part.repeat(length).slice(0, length);
    const accepts = (mode: "execution" | "execution, strict ids", length: number) =>
      fits(mode, "GET", `/v1/executions/${id(length)}`);
    expect([accepts("execution", router), accepts("execution", router + 1)]).toEqual([true, false]);
    expect([accepts("execution, strict ids", strict), accepts("execution, strict ids", strict + 1)]).toEqual([
      true,
      false,
    ]);
  });
});

describe("no path is allowed by two modes", () => {
  it.each(allVectors)("$method $path", ({ method, path }) => {
    expect(fits("parent", method, path) && fits("execution", method, path)).toBe(false);
    expect(fits("parent", method, path) && fits("execution, strict ids", method, path)).toBe(false);
  });

  it("whatever is made from the words of both", () => {
    const word = fc.constantFrom(
      "v1",
      "parents",
      "executions",
      "capabilities",
      "health",
      "turns",
      "cancel",
      "stop",
      "audit",
      `blake3:${"a".repeat(64)}`,
      "one",
      "",
      "..",
    );
    fc.assert(
      fc.property(
        fc.constantFrom("GET", "POST", "DELETE"),
        fc.array(word, { maxLength: 7 }),
        (method, words) => {
          const path = `/${words.join("/")}`;
          return !(
            fits("parent", method, path) &&
            (fits("execution", method, path) || fits("execution, strict ids", method, path))
          );
        },
      ),
      { seed: inject("seed"), numRuns: inject("size") === "long" ? 200_000 : 5_000 },
    );
  });

  it("and none with anything but the bytes of an unreserved path", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...allVectors),
        fc.nat(),
        fc.string({ unit: "binary", minLength: 1, maxLength: 3 }),
        ({ method, path }, at, text) => {
          const place = at % (path.length + 1);
          const target = path.slice(0, place) + text + path.slice(place);
          const passes = Object.values(modes).some(
            (routes) => findRoute(routes, method, target) !== undefined,
          );
          return !passes || /^[A-Za-z0-9._:/-]+$/.test(target);
        },
      ),
      { seed: inject("seed"), numRuns: inject("size") === "long" ? 100_000 : 1_000 },
    );
  });
});

it("each line tells its name without the parameters' values", () => {
  expect(findRoute(modes.execution, "POST", "/v1/executions/run-1/cancel")?.name).toBe(
    "/v1/executions/{id}/cancel",
  );
  expect(backendVectors.length).toBeGreaterThan(0);
});
