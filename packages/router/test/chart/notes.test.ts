import { describe, expect, it } from "vitest";
import { chartDirectory, helm, runHelm, userValues, type Values } from "./support/helm.ts";

const celln = (changes: Values): Values => userValues({ celln: changes });

describe.skipIf(helm === undefined)("after an install helm says", () => {
  it("that nothing was installed, where that is so", async () => {
    expect(await notes({})).toContain("Nothing was installed: celln.enabled is false.");
  });

  it("what the controller and the API server need, and that the latter gets one Secret", async () => {
    const text = await notes(celln({ caConfigMap: "operator-cas" }));
    for (const line of [
      "CELLN_ENABLED=true",
      "CELLN_ROUTER_URL=http://celln-router.celln-system.svc.cluster.local:8787",
      "CELLN_ALLOW_INSECURE_HTTP=true",
      "SSL_CERT_FILE, the path of ca-bundle.crt from ConfigMap operator-cas",
      "Secret celln-router-client as a directory, and the path of its token in CELLN_TOKEN_FILE",
    ])
      expect(text).toContain(line);
    const apiServer = text.split("\n").find((line) => line.trimStart().startsWith("API server"));
    expect(apiServer).toMatch(/Secret celln-discovery .* CELLN_CAPABILITY_TOKEN_FILE; no other Secret/);
    expect(apiServer).not.toMatch(/celln-router-client|celln-dispatcher-backend/);
  });

  it("the same for an external router, and nothing about pods of its own", async () => {
    const text = await notes(celln({ router: { external: true } }));
    expect(text).toContain("No router was installed");
    expect(text).toContain("CELLN_CAPABILITY_TOKEN_FILE");
    expect(text).not.toContain("kubectl");
    expect(text).not.toContain("celln-router-ownership");
  });

  it.each([
    ["a tag", { router: { image: { digest: "", tag: "1" } } }, "WARNING: the image is named by a tag"],
    [
      "more dispatchers than discovery covers",
      { router: { backends: Array.from({ length: 33 }, (_, index) => `http://dispatcher-${index}`) } },
      "With 33 it answers 503 to the API server",
    ],
    ["a ledger that may be new", {}, "set celln.router.requireExistingLedger=true"],
    ["TLS that somebody else must end", { routerUrl: "https://router" }, "this Service speaks plain HTTP"],
  ])("what to mind with %s, and only then", async (_, changes, says) => {
    expect(await notes(celln(changes))).toContain(says);
    const careful = {
      routerUrl: "https://router",
      router: { tlsSecret: "router-tls", requireExistingLedger: true },
    };
    expect(await notes(celln(careful))).not.toContain(says);
  });
});

async function notes(values: Values): Promise<string> {
  const where = ["--namespace", "control-plane", "--values", "-", "--dry-run=client"];
  const { stdout, stderr } = await runHelm(["install", "release", chartDirectory, ...where], values);
  const [, text] = stdout.split("\nNOTES:\n");
  if (text === undefined) throw new TypeError(`no notes: ${stderr}`);
  return text;
}
