// What calls the nodes of a fleet as a peer does: with the fleet's key.
import { randomBytes } from "node:crypto";
import { networkInterfaces } from "node:os";
import { fileURLToPath } from "node:url";
import {
  type FleetKey,
  loadFleetKeys,
  NodeDirectory,
  type NodeRecord,
  PeerClient,
  type PeerConnection,
  type PeerVersion,
  signRequest,
} from "@cellkit/peer";
import { until } from "../../../../tools/test-support/until.ts";
import type { Fleet } from "./fleet.ts";
import type { TestNode } from "./test-node.ts";

/** Cells that say what they were asked. */
export const roomsProject = fileURLToPath(new URL("../fixtures/rooms", import.meta.url));

/** An address of this machine that is not loopback; undefined when there is none. */
export const outerHost = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === "IPv4" && !address.internal)?.address;

/** The key of a fleet. */
export async function keyOf(fleet: Fleet): Promise<FleetKey> {
  const keys = await loadFleetKeys(fleet.bucket);
  if (keys === undefined) throw new TypeError("the fleet has no key yet");
  return keys.keys[0];
}

/** A client that calls through one node only. */
export async function clientThrough(fleet: Fleet, { node }: TestNode): Promise<PeerClient> {
  class Through extends NodeDirectory {
    override async pick(): Promise<NodeRecord> {
      const record = await this.find(node);
      if (record === undefined) throw new TypeError(`${node} has no record`);
      return record;
    }
  }
  const directory = new Through(fleet.bucket, { cacheMs: 100 });
  return new PeerClient({ store: fleet.bucket, key: await keyOf(fleet), self: "tester", directory });
}

/** What a signed request to a node is made of. */
export interface SignedAsk {
  key: FleetKey;
  version?: PeerVersion;
  method?: string;
  body?: string;
  /** Default: the node that is asked. */
  destination?: string;
  timeMs?: number;
  nonce?: string;
}

/** Asks the internal listener of a node with a signature. */
export async function askSigned(node: TestNode, target: string, ask: SignedAsk): Promise<Response> {
  const { key, version = 5, method = "GET", body, destination = node.node } = ask;
  const headers = signRequest({
    key,
    version,
    method,
    target,
    ...(body === undefined ? {} : { body: Buffer.from(body) }),
    source: "tester",
    destination,
    timeMs: ask.timeMs ?? Date.now(),
    nonce: ask.nonce ?? randomBytes(16).toString("hex"),
  });
  const init = {
    method,
    headers: { ...headers },
    redirect: "manual",
    ...(body === undefined ? {} : { body }),
  } as const;
  return fetch(`${node.internalUrl}${target}`, init);
}

/** The WebSocket bytes that came through a tunnel. */
export class TunnelledSocket {
  readonly #connection: PeerConnection;
  #bytes = Buffer.alloc(0);
  #ended = false;

  constructor(connection: PeerConnection) {
    this.#connection = connection;
    const { socket } = connection;
    socket.on("data", (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
    });
    socket.on("end", () => {
      this.#ended = true;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#ended = true;
    });
  }

  get headers(): Headers {
    return this.#connection.headers;
  }

  /** All frames so far: opcode and payload. */
  get frames(): { opcode: number; payload: Buffer }[] {
    const frames = [];
    let at = 0;
    while (at + 2 <= this.#bytes.length) {
      const length = (this.#bytes[at + 1] ?? 0) & 0x7f;
      frames.push({
        opcode: (this.#bytes[at] ?? 0) & 0x0f,
        payload: this.#bytes.subarray(at + 2, at + 2 + length),
      });
      at += 2 + length;
    }
    return frames;
  }

  /** Sends a short text, and waits for the next frame. */
  async ask(text: string): Promise<string> {
    const before = this.frames.length;
    const head = Buffer.from([0x81, 0x80 | Buffer.byteLength(text), 0, 0, 0, 0]);
    this.#connection.socket.write(Buffer.concat([head, Buffer.from(text)]));
    const frame = await until(`answer to ${text}`, () => this.frames[before]);
    return frame.payload.toString();
  }

  /** The close frames that have come once the connection has ended: code and reason. */
  async closes(boundMs = 60_000): Promise<[number, string][]> {
    await until("end of a tunnelled socket", () => this.#ended, boundMs);
    return this.frames
      .filter(({ opcode }) => opcode === 8)
      .map(({ payload }) => [
        payload.length < 2 ? 0 : payload.readUInt16BE(0),
        payload.subarray(2).toString(),
      ]);
  }

  end(): void {
    this.#connection.socket.destroy();
  }
}
