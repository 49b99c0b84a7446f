import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { clusterRefusals } from "./support/cluster-refusals.ts";
import { chartDirectory, helm, problemsIn, render, template, userValues } from "./support/helm.ts";
import { refusals } from "./support/refusal-cases.ts";

describe.skipIf(helm === undefined)("the chart refuses", () => {
  it.concurrent.each(refusals)("$rule", async ({ values, says }) => {
    const { code, stdout, stderr } = await template(values);
    expect(code).not.toBe(0);
    expect(stdout).toBe("");
    expect(problemsIn(stderr)).toEqual(says);
  });

  it("a bare celln.enabled=true, and names everything that is missing", async () => {
    const { code, stderr } = await template({}, ["--set", "celln.enabled=true"]);
    expect(code).not.toBe(0);
    expect(problemsIn(stderr).map((line) => line.split(/[: ]/)[0])).toEqual([
      "celln.allowInsecureHttp",
      "celln.tokenSecret",
      "celln.capabilityTokenSecret",
      "celln.router.image.repository",
      "celln.router.image.digest",
      "celln.router.backends",
      "celln.router.allowInsecureBackends",
      "celln.router.clientTokenSecret",
      "celln.router.backendTokenSecret",
      "celln.router.capabilityTokenSecret",
      "celln.router.ownershipClaim",
    ]);
  });

  it("without printing what stands where a name should", async () => {
    const token = "Zx9-not-a-name_but-a-token-of-40-characters";
    const { stderr } = await template(
      userValues({
        celln: {
          tokenSecret: token,
          capabilityTokenSecret: token,
          caConfigMap: token,
          routerUrl: `http://user:${token}@router`,
          router: {
            image: { repository: `x@${token}`, digest: token, tag: `${token}!` },
            backends: [`http://user:${token}@dispatcher-a:8787`],
            clientTokenSecret: token,
            backendTokenSecret: token,
            capabilityTokenSecret: token,
            tlsSecret: token,
            ownershipClaim: token,
          },
        },
      }),
    );
    expect(problemsIn(stderr).length).toBeGreaterThan(10);
    expect(stderr).not.toContain(token);
  });

  it("in the words of its README, and in no others", () => {
    const readme = readFileSync(join(chartDirectory, "README.md"), "utf8");
    const [, block = ""] = /```text refusals\n([\s\S]*?)```/.exec(readme) ?? [];
    const documented = block.split("\n").filter((line) => line !== "");
    const printed = [...refusals, ...clusterRefusals].flatMap(({ says }) => says);
    expect(printed.filter((line) => !documented.some((each) => isInstance(line, each)))).toEqual([]);
    expect(documented.filter((each) => !printed.some((line) => isInstance(line, each)))).toEqual([]);
  });
});

it.skipIf(helm === undefined)(
  "an https URL needs no acknowledgement, and neither does an external router",
  async () => {
    const https = { routerUrl: "https://router.example:9444", allowInsecureHttp: false };
    expect(await render(userValues({ celln: https }))).not.toEqual([]);
    const external = { enabled: true, ...https, tokenSecret: "client", capabilityTokenSecret: "discovery" };
    expect(await render({ celln: { ...external, router: { external: true } } })).toEqual([]);
  },
);

/** Whether a line is a documented one with its UPPERCASE placeholders filled in. */
function isInstance(line: string, documented: string): boolean {
  const literal = documented.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll(/\b(KEY|OTHER|KIND|PART|NAMESPACE|N)\b/g, ".+")}$`).test(line);
}
