// A workerd without celld: the same binary and Worker, on a TCP socket, its cells on the local disk.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle } from "@cellkit/deployment";
import { until } from "../../../../tools/test-support/until.ts";
import { RawClient } from "../../test/support/raw-client.ts";

const config = (
  modules: string,
  port: number,
  cells: string,
) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = .worker),
    (name = "cells", disk = (path = "${cells}", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "app")],
);
const worker :Workerd.Worker = (
  modules = [${modules}],
  compatibilityDate = "2026-11-01",
  bindings = [(name = "ROOMS", durableObjectNamespace = "Room")],
  durableObjectNamespaces = [(className = "Room", uniqueKey = "bench", enableSql = true)],
  durableObjectStorage = (localDisk = "cells"),
);
`;

/** Starts `binary` on the chat example's ES modules; resolves when it listens. */
export async function startBareWorkerd(
  binary: string,
  { modules }: Bundle,
  { directory, port }: { directory: string; port: number },
): Promise<ChildProcess> {
  const cells = join(directory, "cells");
  await mkdir(cells, { recursive: true });
  const embedded = modules.map(({ name }, index) => `(name = "${name}", esModule = embed "module-${index}")`);
  for (const [index, { bytes }] of modules.entries())
    await writeFile(join(directory, `module-${index}`), bytes);
  await writeFile(join(directory, "config.capnp"), config(embedded.join(", "), port, cells));
  const child = spawn(binary, ["serve", "--experimental", join(directory, "config.capnp")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  await until("workerd that listens", () =>
    RawClient.dial(port).then(
      (client) => {
        client.socket.destroy();
        return true;
      },
      () => false,
    ),
  );
  return child;
}
