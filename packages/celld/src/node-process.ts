// A celld started as a process of its own: what `cellkit dev`, the demo and our tests drain, restart and kill.

import { fileURLToPath } from "node:url";
import { DaemonProcess, type ProcessExit } from "@cellkit/daemon";

/** One node of a local fleet. */
export interface NodeProcessOptions {
  /** The node's name (`CELLD_NODE`). */
  node: string;
  /** The fleet's bucket, `s3://bucket/prefix`. */
  bucket: string;
  endpoint: string;
  region?: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
  /** `host:port` of the public listener. */
  listen: string;
  /** `host:port` of the internal listener. */
  internalListen: string;
  /** `host:port` at which peers reach that listener. @default `internalListen` */
  advertise?: string;
  /** The port of the fleet's relays, free on this machine (`CELLD_ROAD_PORT`). @default celld's own */
  roadPort?: number;
  /** Whether the node relays for this machine (`CELLD_ROAD_RELAY`). @default true */
  roadRelay?: boolean;
  /** The data directory (`CELLD_WATCH`); a restart on the same one takes over from its predecessor at once. */
  directory: string;
  /** A command that runs the one given behind it, for example `["ip", "netns", "exec", "NAME"]`. @default none */
  wrapper?: readonly string[];
  /** Further environment, for example `CELLD_SHUTDOWN_DRAIN_MS`. */
  env?: Readonly<Record<string, string>>;
  onLine?: (line: string, stream: "stdout" | "stderr") => void;
}

/** A running celld process. The constructor starts it; {@link NodeProcess.ready} waits until it serves. */
export class NodeProcess {
  readonly node: string;
  readonly publicUrl: string;
  readonly internalUrl: string;
  readonly process: DaemonProcess;

  constructor(options: NodeProcessOptions) {
    this.node = options.node;
    this.publicUrl = `http://${options.listen}`;
    this.internalUrl = `http://${options.internalListen}`;
    const celld = celldCommand();
    const [command = celld.command, ...args] = [...(options.wrapper ?? []), celld.command, ...celld.args];
    this.process = new DaemonProcess(`celld ${options.node}`, {
      command,
      args: [
        ...args,
        ...[
          "--bucket",
          options.bucket,
          "--endpoint",
          options.endpoint,
          "--region",
          options.region ?? "us-east-1",
        ],
        ...["--listen", options.listen, "--internal-listen", options.internalListen],
        ...["--advertise", options.advertise ?? options.internalListen],
      ],
      env: {
        ...withoutAws(process.env),
        AWS_ACCESS_KEY_ID: options.credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: options.credentials.secretAccessKey,
        CELLD_NODE: options.node,
        CELLD_WATCH: options.directory,
        ...(options.roadPort === undefined ? {} : { CELLD_ROAD_PORT: String(options.roadPort) }),
        ...(options.roadRelay === undefined ? {} : { CELLD_ROAD_RELAY: options.roadRelay ? "1" : "0" }),
        ...options.env,
      },
      ...(options.onLine === undefined ? {} : { onLine: options.onLine }),
    });
  }

  /**
   * Waits until the node's health answers 200, and until that is this very process: on a port that another node has, its
   * health would answer. @throws DaemonProcessError when it ends first or the bound passes
   */
  ready(boundMs = 30_000): Promise<void> {
    return this.process.until("healthy", async () => (await this.#serves()) && this.healthy(), boundMs);
  }

  /** Whether the process of this name has opened its listeners and runs its engine. */
  async #serves(): Promise<boolean> {
    try {
      const { node, runtime } = (await this.state()) as { node?: unknown; runtime?: { state?: unknown } };
      return node === this.node && runtime?.state === "ready";
    } catch {
      // Not listening yet, or no longer.
      return false;
    }
  }

  /** Whether the node's health answers 200 now. */
  async healthy(): Promise<boolean> {
    try {
      const answer = await fetch(`${this.publicUrl}/__celld/health`, { signal: AbortSignal.timeout(1_000) });
      await answer.body?.cancel();
      return answer.status === 200;
    } catch {
      // Not listening yet, or no longer: the process's own end tells more, and `until` reports it.
      return false;
    }
  }

  /** The node's `/state`. */
  async state(): Promise<Record<string, unknown>> {
    const answer = await fetch(`${this.internalUrl}/state`, { signal: AbortSignal.timeout(5_000) });
    return (await answer.json()) as Record<string, unknown>;
  }

  /** SIGTERM: the node drains; answers how it ended (code 0 when everything was handed off in time). */
  drain(boundMs = 60_000): Promise<ProcessExit> {
    return this.process.stop(boundMs);
  }

  /** SIGKILL: the node and its workerd are gone at once. */
  kill(): Promise<ProcessExit> {
    return this.process.kill();
  }
}

/** The credentials are given: no profile, token or endpoint of whoever starts the node may come before them. */
function withoutAws(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("AWS_")));
}

/** How to start celld on this Node: from its source in the workspace, from its built file elsewhere. */
export function celldCommand(): { command: string; args: string[] } {
  const source = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(source ? "./main.ts" : "./main.js", import.meta.url));
  return { command: process.execPath, args: [...(source ? ["--conditions=@cellkit/source"] : []), main] };
}
