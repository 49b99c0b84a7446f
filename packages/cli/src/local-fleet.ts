// A whole fleet on this machine: an embedded bucket, a relay and celld nodes, each a process of its own. None of them outlives this
// one, however it ends.
import { join, resolve } from "node:path";
import { type Bucket, openBucket } from "@cellkit/bucket";
import { makeDirectory } from "@cellkit/bucket/directory";
import { NodeProcess } from "@cellkit/celld";
import type { DaemonProcess, ProcessExit } from "@cellkit/daemon";
import { type Bundle, type Published, publishDeployment } from "@cellkit/deployment";
import { type BucketProcess, startBucketProcess } from "./bucket-process.ts";
import { LocalFleetError, ProcessStartError } from "./errors.ts";
import { freePorts } from "./free-ports.ts";
import { reasonOf } from "./node-log.ts";
import { readProject } from "./project.ts";
import { type RoadProcess, startRoadProcess } from "./road-process.ts";

const maxNodeCount = 64;

/** What a local fleet is made of. */
export interface LocalFleetOptions {
  /** Where the bucket and the nodes keep their data; made if absent, and what it holds already is used again. */
  directory: string;
  /** From 1 to 64. @default 1 */
  nodeCount?: number;
  /** The first node's public port, the others follow. 0 takes free ones. @default 0 */
  port?: number;
  /**
   * A Wrangler project's directory, or a bundle, that is deployed before the nodes start; they serve it as soon as they are
   * healthy. @default what the directory holds; nodes with nothing to run are healthy and answer 404
   */
  project?: string | Bundle;
  /** Further environment of every node. */
  env?: Readonly<Record<string, string>>;
  /** Ends the start: nothing is left running, and the promise rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Hears what is going on, a line at a time. */
  onProgress?: (line: string) => void;
  /** Hears the log lines of every process; its name is `bucket`, `road`, `node-1`, … */
  onLog?: (process: string, line: string) => void;
  /** Hears of a process that served and ended though the fleet did not ask it to, and why. */
  onEnded?: (process: string, reason: string) => void;
}

/** One place of a local fleet: its addresses and data stay, the process in it comes and goes. */
export interface LocalNode {
  /** `node-1`, … */
  readonly name: string;
  readonly publicUrl: string;
  readonly internalUrl: string;
  /** The process that runs here now, or the last one that did. */
  readonly process: NodeProcess;
}

/** A running local fleet. */
export interface LocalFleet extends AsyncDisposable {
  readonly nodes: readonly LocalNode[];
  /** The bucket's address and keys, as environment for `cellkit deploy` and for nodes of one's own. */
  readonly bucketEnvironment: Readonly<Record<string, string>>;
  /** Opens the fleet's bucket. */
  openBucket(): Bucket;
  /**
   * Makes a Wrangler project, or a bundle, the fleet's deployment. Nodes that run nothing yet adopt it within seconds, others
   * when they are restarted.
   */
  deploy(
    project: string | Bundle,
    options?: { signal?: AbortSignal },
  ): Promise<Published & { warnings: readonly string[] }>;
  /**
   * Starts a process in a node's place and waits until it serves. One that runs there is ended first: drained, or with
   * `end: "kill"` at once, which takes less time and cuts off what it is doing.
   * @throws ProcessStartError (`CELLKIT_CLI_PROCESS_START`), LocalFleetError, or the signal's reason
   */
  restart(node: LocalNode, options?: RestartOptions): Promise<void>;
  /** Drains all nodes at the same time, then ends the relay and the bucket. The last node with cells takes 5 s for that. */
  close(): Promise<void>;
  /** Ends every process at once. What was acknowledged is in the bucket, and a later fleet of the directory has it. */
  kill(): Promise<void>;
}

/** Options of {@link LocalFleet.restart}. */
export interface RestartOptions {
  /** @default "drain" */
  end?: "drain" | "kill";
  /** Ends the waiting; the process that was being started is gone then. */
  signal?: AbortSignal;
}

/**
 * Starts an embedded bucket and celld nodes on it, and waits until all of them serve.
 * @throws ProcessStartError (`CELLKIT_CLI_PROCESS_START`), LocalFleetError (`CELLKIT_CLI_LOCAL_FLEET`), ProjectError, what
 * deploying throws, or the signal's reason; nothing is left running then
 */
export async function startLocalFleet(options: LocalFleetOptions): Promise<LocalFleet> {
  const { nodeCount = 1, signal } = options;
  if (!Number.isInteger(nodeCount) || nodeCount < 1 || nodeCount > maxNodeCount) {
    throw new LocalFleetError(`nodeCount is ${nodeCount}; a local fleet has 1 to ${maxNodeCount} nodes`);
  }
  const bundle =
    typeof options.project === "string" ? await readProject(options.project, signal) : options.project;
  signal?.throwIfAborted();
  const fleet = await ProcessFleet.withBucket({ ...options, directory: resolve(options.directory) });
  try {
    if (bundle !== undefined) await fleet.deploy(bundle, options);
    await fleet.startNodes(nodeCount, signal);
  } catch (error) {
    await fleet.kill();
    signal?.throwIfAborted();
    throw error;
  }
  return fleet;
}

interface Place extends LocalNode {
  process: NodeProcess;
  readonly start: () => NodeProcess;
}

class ProcessFleet implements LocalFleet {
  readonly nodes: Place[] = [];
  readonly bucketEnvironment: Readonly<Record<string, string>>;
  readonly #options: LocalFleetOptions;
  readonly #env: Readonly<Record<string, string>>;
  readonly #bucket: BucketProcess;
  readonly #road: RoadProcess;
  readonly #progress: (line: string) => void;
  /** Processes whose end was asked for. */
  readonly #ending = new WeakSet<NodeProcess>();
  #closing: Promise<void> | undefined;

  private constructor(
    options: LocalFleetOptions,
    env: Readonly<Record<string, string>>,
    bucket: BucketProcess,
    road: RoadProcess,
  ) {
    this.#options = options;
    this.#env = env;
    this.#bucket = bucket;
    this.#road = road;
    this.#progress = options.onProgress ?? (() => {});
    this.bucketEnvironment = bucket.environment;
    this.#watch("bucket", bucket.process, () => false);
    this.#watch("road", road.process, () => false);
  }

  static async withBucket(options: LocalFleetOptions): Promise<ProcessFleet> {
    const directory = join(options.directory, "bucket");
    await makeDirectory(directory);
    // Compiled code is kept between starts, which halves the CPU time of one: clients of a killed node wait for that.
    const env = {
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(options.directory, "compile-cache"),
    };
    const onLog = (line: string) => options.onLog?.("bucket", line);
    const bucket = await startBucketProcess(directory, { ...process.env, ...env }, onLog);
    options.onProgress?.(`bucket serves ${directory}`);
    try {
      const onRoadLog = (line: string) => options.onLog?.("road", line);
      const road = await startRoadProcess(bucket, { ...process.env, ...env }, onRoadLog);
      return new ProcessFleet(options, env, bucket, road);
    } catch (error) {
      await bucket.process.kill();
      throw error;
    }
  }

  openBucket(): Bucket {
    const { url, endpoint, region, credentials } = this.#bucket;
    return openBucket(url, { endpoint, region, credentials });
  }

  async deploy(
    project: string | Bundle,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<Published & { warnings: readonly string[] }> {
    this.#mustBeOpen();
    const bundle = typeof project === "string" ? await readProject(project, signal) : project;
    const bucket = this.openBucket();
    const published = await publishDeployment(bucket, bundle, { signal }).finally(() => bucket.close());
    const { scriptName, version, created } = published;
    this.#progress(`${scriptName} ${version} is ${created ? "deployed" : "deployed already"}`);
    return { ...published, warnings: bundle.warnings };
  }

  async startNodes(count: number, signal: AbortSignal | undefined): Promise<void> {
    const { port = 0 } = this.#options;
    const free = await freePorts(2 * count);
    for (const [index, internalPort] of free.slice(count).entries()) {
      const publicPort = port === 0 ? (free[index] ?? 0) : port + index;
      const start = () => this.#start(`node-${index + 1}`, publicPort, internalPort);
      const process = start();
      const { node: name, publicUrl, internalUrl } = process;
      this.nodes.push({ name, publicUrl, internalUrl, process, start });
    }
    this.#progress(count === 1 ? "node-1 starts" : `${count} nodes start`);
    await Promise.all(this.nodes.map((node) => this.#ready(node, signal)));
  }

  async restart(node: LocalNode, { end = "drain", signal }: RestartOptions = {}): Promise<void> {
    this.#mustBeOpen();
    const place = this.nodes.find((each) => each === node);
    if (place === undefined) throw new LocalFleetError(`${node.name} is not a node of this fleet`);
    if (end === "drain") await this.#drain(place);
    else await this.#end(place.process, () => place.process.kill());
    signal?.throwIfAborted();
    this.#mustBeOpen();
    place.process = place.start();
    await this.#ready(place, signal);
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.all(this.nodes.map((node) => this.#drain(node)));
      await this.#road.stop();
      await this.#bucket.stop();
    })();
    return this.#closing;
  }

  async kill(): Promise<void> {
    const ends = [
      ...this.nodes.map(({ process }) => process.process),
      this.#road.process,
      this.#bucket.process,
    ];
    const killed = Promise.all(ends.map((process) => process.kill())).then(() => undefined);
    this.#closing ??= killed;
    await killed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #start(name: string, publicPort: number, internalPort: number): NodeProcess {
    const { url, endpoint, region, credentials } = this.#bucket;
    const { directory, env, onLog } = this.#options;
    return new NodeProcess({
      node: name,
      bucket: url,
      endpoint,
      region,
      credentials,
      listen: `127.0.0.1:${publicPort}`,
      internalListen: `127.0.0.1:${internalPort}`,
      directory: join(directory, name),
      roadPort: this.#road.port,
      roadRelay: false,
      env: { ...this.#env, ...env },
      onLine: (line) => onLog?.(name, line),
    });
  }

  /** Waits until the process in a place serves. One that does not is gone afterwards. */
  async #ready({ name, process }: Place, signal: AbortSignal | undefined): Promise<void> {
    const aborted = () => void this.#end(process, () => process.kill());
    signal?.addEventListener("abort", aborted, { once: true });
    try {
      signal?.throwIfAborted();
      await process.ready();
    } catch (cause) {
      await this.#end(process, () => process.kill());
      signal?.throwIfAborted();
      throw new ProcessStartError(name, reasonOf(process.process.lastLines), { cause });
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
    this.#progress(`${name} serves ${process.publicUrl}`);
    this.#watch(name, process.process, () => this.#ending.has(process));
  }

  /** Tells of an end that nobody asked for. */
  #watch(name: string, process: DaemonProcess, isEnding: () => boolean): void {
    void process.exited.then(({ code, signal }) => {
      if (this.#closing !== undefined || isEnding()) return;
      const reason = signal ?? `code ${code ?? "none"}: ${reasonOf(process.lastLines)}`;
      this.#options.onEnded?.(name, reason);
    });
  }

  async #drain({ name, process }: Place): Promise<void> {
    if (process.process.exit !== undefined) return;
    this.#progress(`${name} drains`);
    const { code } = await this.#end(process, () => process.drain());
    if (code !== 0) this.#progress(`${name} did not drain cleanly (code ${code ?? "none"})`);
  }

  #end(process: NodeProcess, end: () => Promise<ProcessExit>): Promise<ProcessExit> {
    this.#ending.add(process);
    return end();
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined)
      throw new LocalFleetError("this local fleet is closed; start another one");
  }
}
