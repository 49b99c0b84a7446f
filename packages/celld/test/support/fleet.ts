// A fleet of real celld processes on one bucket server, for tests.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Bucket, openBucket } from "@cellkit/bucket";
import { type BucketServer, serveBucket } from "@cellkit/bucket/server";
import { bundleProject, publishDeployment } from "@cellkit/deployment";
import {
  type FleetKeyring,
  NodeDirectory,
  openFleetKeyring,
  type RoadFailure,
  type RoadRelay,
} from "@cellkit/peer";
import { freePort } from "../../../../tools/test-support/free-port.ts";
import { until } from "../../../../tools/test-support/until.ts";
import { openRelay } from "../../src/open-relay.ts";
import { processesOf } from "./processes.ts";
import { TestNode } from "./test-node.ts";

/** The Worker of most tests: rooms with SQLite and sockets. */
export const chatProject = fileURLToPath(new URL("../../../../examples/chat", import.meta.url));

const credentials = { accessKeyId: "celld-test", secretAccessKey: "only-for-tests" };

/** What a node is given beside its place in the fleet. */
export interface NodeSettings {
  env?: Readonly<Record<string, string>>;
  /** Default: the store's own; a fault proxy in front of it, for example. */
  endpoint?: string;
  /** Where its listeners are. Default: 127.0.0.1. */
  host?: string;
  /** Where peers reach its internal listener; a man in the middle, for example. Default: the listener itself. */
  advertise?: string;
  /** See `NodeProcessOptions.wrapper`. */
  wrapper?: readonly string[];
  /** Who relays for it: the fleet's relay in this process, a relay of its own, or nobody. Default: the fleet's. */
  relay?: "fleet" | "own" | "none";
}

interface Place {
  node: string;
  directory: string;
  listen: string;
  internalListen: string;
}

/** A bucket server and the nodes on it. */
export class Fleet implements AsyncDisposable {
  readonly store: BucketServer;
  readonly credentials = credentials;
  readonly bucketUrl: string;
  readonly bucket: Bucket;
  /** Everything that the fleet keeps on disk. */
  readonly directory: string;
  /** What the fleet's own relay told: connections that it could not carry, or that were cut. */
  readonly roadFailures: RoadFailure[] = [];
  readonly #places: Place[] = [];
  readonly #running = new Set<TestNode>();
  #road: Promise<{ keyring: FleetKeyring; relay: RoadRelay; port: number }> | undefined;
  #sharedRoadPort: number | undefined;

  private constructor(store: BucketServer, directory: string) {
    this.store = store;
    this.directory = directory;
    this.bucketUrl = `s3://${store.bucketName}/fleet`;
    this.bucket = openBucket(this.bucketUrl, { endpoint: store.endpoint, credentials });
  }

  /** A bucket without nodes, served at `host`. */
  static async open({ host = "127.0.0.1" }: { host?: string } = {}): Promise<Fleet> {
    const directory = await mkdtemp(join(tmpdir(), "celld-test-"));
    return new Fleet(
      await serveBucket({ directory: join(directory, "bucket"), credentials, host }),
      directory,
    );
  }

  /** A fleet of `nodeCount` healthy nodes that serve `project`. */
  static async start(
    nodeCount: number,
    settings: NodeSettings & { project?: string } = {},
  ): Promise<{ fleet: Fleet; nodes: TestNode[] }> {
    const fleet = await Fleet.open();
    try {
      await fleet.deploy(settings.project);
      const nodes = [];
      for (let index = 0; index < nodeCount; index += 1) nodes.push(await fleet.node(index, settings));
      await Promise.all(nodes.map((node) => node.ready()));
      return { fleet, nodes };
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Bundles a project and makes it the fleet's deployment. */
  async deploy(project: string = chatProject): Promise<void> {
    await publishDeployment(this.bucket, await bundleProject(project));
  }

  /** Starts the node of a place; the same place again is a restart: same name, ports and data directory. */
  async node(index: number, settings: NodeSettings = {}): Promise<TestNode> {
    const { env, endpoint, host = "127.0.0.1", advertise, wrapper, relay = "fleet" } = settings;
    this.#places[index] ??= {
      node: `node-${index}`,
      directory: join(this.directory, `node-${index}`),
      listen: `${host}:${await freePort()}`,
      internalListen: `${host}:${await freePort()}`,
    };
    const node = new TestNode({
      ...this.#places[index],
      roadPort: relay === "fleet" ? (await this.road()).port : await this.#shareRoad(),
      roadRelay: relay === "own",
      bucket: this.bucketUrl,
      endpoint: endpoint ?? this.store.endpoint,
      credentials,
      ...(advertise === undefined ? {} : { advertise }),
      ...(wrapper === undefined ? {} : { wrapper }),
      // A killed node leaves the folder of its sockets behind; here it goes with the fleet.
      env: { TMPDIR: this.directory, ...env },
    });
    this.#running.add(node);
    void node.process.exited.then(() => this.#running.delete(node));
    return node;
  }

  /** What the workerd of a node advertises: the node's alias and the port of the fleet's relay. */
  async advertisedBy({ node }: TestNode): Promise<string> {
    const { live } = await new NodeDirectory(this.bucket).list();
    const alias = live.find((record) => record.node === node)?.roadAlias;
    if (alias === undefined) throw new Error(`no live record of ${node} with an alias`);
    return `${alias}:${(await this.road()).port}`;
  }

  /** The fleet's relay: one for all nodes, since they share a machine. None of them takes it along when it ends. */
  road(): Promise<{ keyring: FleetKeyring; relay: RoadRelay; port: number }> {
    this.#road ??= (async () => {
      const keyring = await openFleetKeyring(this.bucket, { create: true });
      const onFailure = (failure: RoadFailure) => void this.roadFailures.push(failure);
      const opened = await openRelay({ bucket: this.bucket, keyring, self: "relay", port: 0, onFailure });
      return { keyring, ...opened };
    })();
    return this.#road;
  }

  /** A port for the relays of nodes that have one of their own. */
  async #shareRoad(): Promise<number> {
    this.#sharedRoadPort ??= await freePort();
    return this.#sharedRoadPort;
  }

  /** Ends all nodes at once, then the relay and the bucket server. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((node) => node.kill()));
    const road = await this.#road;
    await road?.relay.close();
    await road?.keyring.close();
    await this.bucket.close();
    await this.store.close();
    // The workerd of a killed node may still write for a moment.
    await until("end of all processes", async () => (await processesOf(this.directory)).length === 0, 60_000);
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}
