// Network namespaces, one for each node, on a bridge of their own: what is on a node's loopback is then on no other's. Linux, as
// root, with `ip` of iproute2.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";

const run = promisify(execFile);
const ip = async (...args: string[]) => void (await run("ip", args));

/** Where a process runs that is started with `wrapper`, and at which address it can be reached. */
export interface Namespace {
  readonly host: string;
  readonly wrapper: readonly string[];
}

/** Why there can be no namespaces here; undefined when there can. In CI only a missing right or tool is a reason. */
export async function whyNoNetwork(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "it needs to be root";
  try {
    await run("ip", ["-V"]);
  } catch {
    return "it needs `ip` (iproute2)";
  }
  if (process.env["CI"] === "true") return undefined;
  try {
    await using network = await Network.open();
    await network.namespace();
    return undefined;
  } catch (error) {
    return `namespaces cannot be made: ${(error as Error).message.trim()}`;
  }
}

/** A bridge, and the namespaces on it. This process reaches them all, and they reach each other. */
export class Network implements AsyncDisposable {
  /** This process's address on the bridge. */
  readonly host: string;
  readonly #name: string;
  readonly #subnet: string;
  readonly #namespaces: string[] = [];

  private constructor(name: string, subnet: string) {
    this.#name = name;
    this.#subnet = subnet;
    this.host = `${subnet}.1`;
  }

  static async open(): Promise<Network> {
    const [high = 0, low = 0] = randomBytes(2);
    // 10.0.0.0/8 is what celld takes for private (RFC 1918).
    const network = new Network(`ck${randomBytes(3).toString("hex")}`, `10.${200 + (high % 56)}.${low}`);
    await ip("link", "add", network.#name, "type", "bridge");
    try {
      await ip("addr", "add", `${network.host}/24`, "dev", network.#name);
      await ip("link", "set", network.#name, "up");
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
    return network;
  }

  /** Makes another namespace. */
  async namespace(): Promise<Namespace> {
    const number = this.#namespaces.length;
    const name = `${this.#name}-${number}`;
    const [outer, inner] = [`${this.#name}o${number}`, `${this.#name}i${number}`];
    const host = `${this.#subnet}.${number + 2}`;
    await ip("netns", "add", name);
    this.#namespaces.push(name);
    await ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name);
    await ip("link", "set", outer, "master", this.#name, "up");
    await ip("-n", name, "addr", "add", `${host}/24`, "dev", inner);
    await ip("-n", name, "link", "set", inner, "up");
    await ip("-n", name, "link", "set", "lo", "up");
    return { host, wrapper: ["ip", "netns", "exec", name] };
  }

  /** Takes everything away; processes in the namespaces have to be gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#namespaces.splice(0)) await ip("netns", "del", name);
    await ip("link", "del", this.#name);
  }
}
