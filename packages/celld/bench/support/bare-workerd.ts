// A workerd without celld: the same binary and Worker, on a TCP socket.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RawClient } from "../../test/support/raw-client.ts";
import { until } from "../../test/support/until.ts";

const config = (module: string, port: number) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "app", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "app")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "${module}")],
  compatibilityDate = "2026-11-01",
);
`;

/** Starts `binary` on the text of a module; resolves when it listens. */
export async function startBareWorkerd(
  binary: string,
  source: string,
  { directory, port }: { directory: string; port: number },
): Promise<ChildProcess> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "worker.js"), source);
  await writeFile(join(directory, "config.capnp"), config("worker.js", port));
  const child = spawn(binary, ["serve", join(directory, "config.capnp")], { stdio: "ignore" });
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
