// A fleet of real celld processes on one bucket server, for tests.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Bucket, openBucket } from "@cellkit/bucket";
import { type BucketServer, serveBucket } from "@cellkit/bucket/server";
import { bundleProject, publishDeployment } from "@cellkit/deployment";
import { type FleetKeyring, openFleetKeyring, type RoadRelay } from "@cellkit/peer";
import { openRelay } from "../../src/open-relay.ts";
import { freePort } from "./free-port.ts";
import { TestNode } from "./test-node.ts";

/** The Worker of most tests: rooms with SQLite and sockets. */
export const chatProject = fileURLToPath(new URL("../../../../examples/chat", import.meta.url));

const credentials = { accessKeyId: "celld-test", secretAccessKey: "only-for-tests" };

/** What a node is given beside its place in the fleet. */
export interface NodeSettings {
  env?: Readonly<Record<string, string>>;
  /** Default: the store's own; a fault proxy in front of it, for example. */
  endpoint?: string;
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
  readonly #places: Place[] = [];
  readonly #running = new Set<TestNode>();
  #road: { keyring: FleetKeyring; relay: RoadRelay; port: number } | undefined;

  private constructor(store: BucketServer, directory: string) {
    this.store = store;
    this.directory = directory;
    this.bucketUrl = `s3://${store.bucketName}/fleet`;
    this.bucket = openBucket(this.bucketUrl, { endpoint: store.endpoint, credentials });
  }

  /** A bucket without nodes. */
  static async open(): Promise<Fleet> {
    const directory = await mkdtemp(join(tmpdir(), "celld-test-"));
    return new Fleet(await serveBucket({ directory: join(directory, "bucket"), credentials }), directory);
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
  async node(index: number, { env, endpoint }: NodeSettings = {}): Promise<TestNode> {
    this.#places[index] ??= {
      node: `node-${index}`,
      directory: join(this.directory, `node-${index}`),
      listen: `127.0.0.1:${await freePort()}`,
      internalListen: `127.0.0.1:${await freePort()}`,
    };
    const { port: roadPort } = await this.#openRoad();
    const node = new TestNode({
      ...this.#places[index],
      roadPort,
      roadRelay: false,
      bucket: this.bucketUrl,
      endpoint: endpoint ?? this.store.endpoint,
      credentials,
      // A killed node leaves the folder of its sockets behind; here it goes with the fleet.
      env: { TMPDIR: this.directory, ...env },
    });
    this.#running.add(node);
    void node.process.exited.then(() => this.#running.delete(node));
    return node;
  }

  /** One relay for all nodes, since they share a machine: none of them takes it along when it ends. */
  async #openRoad(): Promise<{ port: number }> {
    if (this.#road === undefined) {
      const keyring = await openFleetKeyring(this.bucket, { create: true });
      const self = "relay";
      const opened = await openRelay({ bucket: this.bucket, keyring, self, port: 0, onFailure: () => {} });
      this.#road = { keyring, ...opened };
    }
    return this.#road;
  }

  /** Ends all nodes at once, then the relay and the bucket server. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((node) => node.kill()));
    await this.#road?.relay.close();
    await this.#road?.keyring.close();
    await this.bucket.close();
    await this.store.close();
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}
