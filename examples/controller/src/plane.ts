// A plane to try the controller on: two stand-ins for dispatchers, and the router as a process that can be killed.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DaemonProcess } from "@cellkit/daemon";
import { RouterClient } from "@cellkit/execution";
import { dispatcher, type ScriptedDispatcher, testBackendToken } from "@cellkit/testing";

/** Where the router's program lies in this repository. Elsewhere it is `cellkit-router`. */
const program = join(
  dirname(createRequire(import.meta.url).resolve("@cellkit/router/package.json")),
  "src/main.ts",
);
const startBoundMs = 30_000;

/** A plane on this machine. */
export class Plane {
  readonly directory: string;
  readonly dispatchers: readonly ScriptedDispatcher[];
  #router: DaemonProcess | undefined;
  #address = "127.0.0.1:0";

  private constructor(directory: string, dispatchers: readonly ScriptedDispatcher[]) {
    this.directory = directory;
    this.dispatchers = dispatchers;
  }

  /** @param afterMs how long each execution takes */
  static async start(afterMs: number): Promise<Plane> {
    const directory = await mkdtemp(join(tmpdir(), "cellkit-controller-"));
    await mkdir(join(directory, "work"));
    await writeFile(join(directory, "backend-token"), testBackendToken, { mode: 0o600 });
    const nodes = ["node-a", "node-b"].map((name) => dispatcher({ node: { name }, run: { afterMs } }));
    const plane = new Plane(directory, await Promise.all(nodes));
    await writeFile(plane.tokenFile, "client-token-of-this-example", { mode: 0o600 });
    await plane.startRouter();
    return plane;
  }

  /** The controller's directory. */
  get work(): string {
    return join(this.directory, "work");
  }

  /** Where the router listens. */
  get url(): string {
    return `http://${this.#address}`;
  }

  /** The file with the token of its clients. */
  get tokenFile(): string {
    return join(this.directory, "client-token");
  }

  /** A client of the router. @param submitTimeoutMs how long it tries one submission before it gives up for the moment */
  client(submitTimeoutMs = 60_000): RouterClient {
    return new RouterClient({ url: this.url, tokenFile: this.tokenFile, submitTimeoutMs });
  }

  /** Starts the router, at the same address as before. */
  async startRouter(): Promise<void> {
    let address: string | undefined;
    const router = new DaemonProcess("cellkit-router", {
      command: process.execPath,
      args: [
        ...["--conditions=@cellkit/source", program, "--listen", this.#address, "--log-format", "json"],
        ...["--backends", this.dispatchers.map(({ origin }) => origin).join(",")],
        ...["--client-token-file", this.tokenFile],
        ...["--token-file", join(this.directory, "backend-token")],
        ...["--ledger", join(this.directory, "ledger")],
      ],
      env: { PATH: process.env["PATH"] },
      onLine: (line) => {
        address ??= /"listen":"([^"]+)"/.exec(line)?.[1];
      },
    });
    this.#router = router;
    await router.until("ready", async () => address !== undefined, startBoundMs);
    this.#address = address ?? this.#address;
  }

  /** kill -9: it says nothing to anybody. */
  async killRouter(): Promise<void> {
    await this.#router?.kill();
  }

  async close(): Promise<void> {
    await this.killRouter();
    await Promise.all(this.dispatchers.map((each) => each.close()));
    await rm(this.directory, { recursive: true, force: true });
  }
}
