import { describe, expect, it } from "vitest";
import { parseVariables } from "../../src/core/variables.ts";

describe("parseVariables", () => {
  it.each([
    ["a JSON object", '\n {"A":"1","b-c":"x=y"}', { A: "1", "b-c": "x=y" }],
    ["lines, comments and empty lines", "# one\n\nA=1\r\n  B = two words \n", { A: "1", B: "two words" }],
    ["quoted values", 'A=" x "\nB=\'#\'\nC="open', { A: " x ", B: "#", C: '"open' }],
    ["export before a name", "export A=1", { A: "1" }],
    ["a value with = in it", "A=b=c", { A: "b=c" }],
    ["nothing", "", {}],
  ])("reads %s", (_, text, variables) => {
    expect(parseVariables(text)).toEqual({ variables });
  });

  it.each([
    ["JSON that is cut off", '{"A":"s3cret"'],
    ["JSON with a number", '{"A":1,"B":"s3cret"}'],
    ["a line without =", "A=1\ns3cret"],
    ["a name that is none", "1A=s3cret"],
  ])("names the problem of %s and shows no value", (_, text) => {
    const parsed = parseVariables(text);
    expect(parsed).toHaveProperty("problem");
    expect(JSON.stringify(parsed)).not.toContain("s3cret");
  });
});
