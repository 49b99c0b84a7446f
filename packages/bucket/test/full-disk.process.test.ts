import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { startChild } from "./support/child.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

/** A file system of 2 MiB for one process: needs a user namespace that may mount. */
const namespace = ["unshare", "--map-root-user", "--mount"];
const possible =
  spawnSync(namespace[0] ?? "", [...namespace.slice(1), "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status ===
  0;

it.skipIf(!possible && process.env["CI"] !== "true")(
  "a full disk is said plainly, loses nothing that was acknowledged, and ends when there is room (needs: unshare and tmpfs)",
  async () => {
    const directory = await temporaryDirectory();
    const mount = ["sh", "-c", 'mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"', directory];
    const child = startChild("full-disk-process.ts", [directory], [...namespace, ...mount]);
    const result = (await child.next()) as Record<string, unknown>;
    expect(result).toMatchObject({
      remoteCode: "CELLKIT_BUCKET_FULL",
      localCode: "CELLKIT_BUCKET_FULL",
      whole: result["acknowledged"],
      listed: result["acknowledged"],
      afterwards: "applied",
      failures: ["CELLKIT_BUCKET_FULL"],
    });
    expect(result["acknowledged"]).toBeGreaterThan(10);
  },
);
