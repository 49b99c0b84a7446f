// The same Worker in a workerd of its own, without an entry module: what the application would see without cellkit.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../../tools/test-support/until.ts";
import { capnpText, struct } from "../../src/core/capnp-text.ts";
import { planWorker } from "../../src/core/worker-plan.ts";
import { cellKey } from "../../src/core/workerd-config.ts";
import { findWorkerd } from "../../src/workerd-binary.ts";
import { type TestWorker, testBundle } from "./bundles.ts";

/** A running workerd, in the shape that `ask` takes. */
export interface BareWorkerd extends AsyncDisposable {
  readonly publicSocket: string;
}

/** Starts workerd on a Worker, without a cluster. */
export async function startBareWorkerd(worker: TestWorker): Promise<BareWorkerd> {
  const plan = planWorker(testBundle(worker));
  const directory = await mkdtemp(join(tmpdir(), "cellkit-bare-"));
  await mkdir(join(directory, "cells"));
  const publicSocket = join(directory, "public");
  for (const [index, { bytes }] of plan.modules.entries())
    await writeFile(join(directory, `module-${index}`), bytes);
  const config = struct({
    services: [
      struct({
        name: "app",
        worker: struct({
          modules: plan.modules.map(({ name }, index) =>
            struct({ name, esModule: { embed: `module-${index}` } }),
          ),
          compatibilityDate: plan.compatibilityDate,
          compatibilityFlags: [...plan.compatibilityFlags],
          bindings: plan.bindings.map((binding) =>
            binding.kind === "cells"
              ? struct({ name: binding.name, durableObjectNamespace: binding.className })
              : struct({
                  name: binding.name,
                  [binding.kind]: binding.kind === "text" ? binding.text : binding.json,
                }),
          ),
          durableObjectNamespaces: plan.cells.map(({ className, sqlite }) =>
            struct({ className, uniqueKey: cellKey(plan.scriptName, className), enableSql: sqlite }),
          ),
          durableObjectStorage: struct({ localDisk: "cells" }),
        }),
      }),
      struct({ name: "cells", disk: struct({ path: join(directory, "cells"), writable: true }) }),
    ],
    sockets: [
      struct({
        name: "public",
        address: `unix:${publicSocket}`,
        http: struct({ cfBlobHeader: "test-cf" }),
        service: "app",
      }),
    ],
  });
  const file = join(directory, "config.capnp");
  await writeFile(
    file,
    `using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = ${capnpText(config)};`,
  );
  const child: ChildProcess = spawn(await findWorkerd(), ["serve", "--experimental", file], {
    stdio: "ignore",
  });
  await until("workerd listens", () => connects(publicSocket));
  return {
    publicSocket,
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function connects(path: string): Promise<boolean> {
  const socket = connect(path);
  const open = await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  });
  socket.destroy();
  return open;
}
