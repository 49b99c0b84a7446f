import { execFile } from "node:child_process";
import { expect, it } from "vitest";

const client = new URL("../src/index.ts", import.meta.url).href;

/** What importing the package says on a Node that calls itself `version`, and whether undici was loaded by then. */
function importOn(version: string): Promise<unknown> {
  const script = `
    Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} });
    const { code, message } = await import(${JSON.stringify(client)}).catch((error) => error);
    const modules = Object.values((await import("node:module")).createRequire(${JSON.stringify(client)}).cache);
    const undici = modules.some(({ filename, loaded }) => loaded && filename.includes("undici"));
    process.stdout.write(JSON.stringify({ code, message, undici }));`;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ["--input-type=module", "-e", script], (error, stdout) =>
      error === null ? resolve(JSON.parse(stdout)) : reject(error),
    );
  });
}

it.each(["20.20.2", "22.18.0"])("Node %s is refused in words, before undici is loaded", async (version) => {
  expect(await importOn(version)).toEqual({
    code: "CELLKIT_CLIENT_NODE_VERSION",
    message: `@cellkit/client needs Node 22.19 or later, and this is ${version}: run it on a newer one`,
    undici: false,
  });
});

it.each(["22.19.0", "24.0.0"])("Node %s is not", async (version) => {
  expect(await importOn(version)).toEqual({ undici: true });
});
