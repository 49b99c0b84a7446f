// A node as far as its peers and a prober see it, made of @cellkit/peer's parts as any daemon would; and fleets of them
// on a bucket in a directory.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Bucket, openBucket } from "@cellkit/bucket";
import {
  answerProbe,
  createProbeKey,
  type FleetKeyring,
  type NodeDescription,
  type NodeRegistration,
  openFleetKeyring,
  type PeerListener,
  type PeerListenerOptions,
  peerListener,
  probePath,
  RequestVerifier,
  recordsExtension,
  registerNode,
} from "@cellkit/peer";

/** What a test makes of a node. */
export interface PeerNodeOptions extends Partial<PeerListenerOptions> {
  /** How often it reads the keys. @default 100 */
  refreshMs?: number;
  /** Its record does not show its keys, as a foreign node's. */
  silent?: boolean;
  draining?: boolean;
}

/** A running node. */
export class PeerNode implements AsyncDisposable {
  readonly name: string;
  readonly addr: string;
  readonly keyring: FleetKeyring;
  readonly listener: PeerListener;
  readonly registration: NodeRegistration;
  readonly #server: Server;

  private constructor(
    parts: Pick<PeerNode, "name" | "addr" | "keyring" | "listener" | "registration">,
    server: Server,
  ) {
    this.name = parts.name;
    this.addr = parts.addr;
    this.keyring = parts.keyring;
    this.listener = parts.listener;
    this.registration = parts.registration;
    this.#server = server;
  }

  static async start(bucket: Bucket, name: string, options: PeerNodeOptions = {}): Promise<PeerNode> {
    const { refreshMs = 100, silent = false, draining = false, keys, ...handlers } = options;
    let registration: NodeRegistration | undefined;
    const keyring = await openFleetKeyring(bucket, {
      create: true,
      refreshMs,
      onChange: () => void registration?.renew().catch(() => {}),
    });
    const accepted = keys ?? (() => keyring.keys);
    const verifier = new RequestVerifier({ keys: accepted, version: 5, self: name });
    const listener = peerListener({ self: name, keys: accepted, verifier, ...handlers });
    const probeKey = createProbeKey();
    let addr = "";
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      if (listener.request(request, response)) return;
      const { method = "", url: target = "", rawHeaders } = request;
      const headers = rawHeaders.flatMap(
        (each, at): Array<[string, string]> => (at % 2 === 0 ? [[each, rawHeaders[at + 1] ?? ""]] : []),
      );
      if (target === probePath[5]) {
        const identity = { node: name, advertise: addr, privateKey: probeKey.privateKey };
        const reply = answerProbe(
          { method, target, headers },
          { verifier, version: 5, identity, nowMs: Date.now() },
        );
        response.writeHead(reply.status, { ...reply.headers }).end(reply.body);
      } else if (target === "/state") {
        response.end(JSON.stringify({ ownership: "s3", node: name, version: "9.9.9", draining }));
      } else response.writeHead(404).end('{"error":"not_found"}');
    };
    const server = createServer(answer).on("upgrade", (request, socket, head) => {
      if (!listener.upgrade(request, socket, head)) socket.destroy();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    addr = `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
    const describe = (): NodeDescription => ({
      node: name,
      addr,
      peerProtocol: 5,
      probePublicKey: probeKey.publicKeyHex,
      extensions: [recordsExtension],
      ...(silent ? {} : { peerKeys: keyring.shown }),
    });
    registration = await registerNode(bucket, describe);
    return new PeerNode({ name, addr, keyring, listener, registration }, server);
  }

  /** Ends it as SIGKILL does: its record stays. */
  kill(): void {
    this.listener.destroy();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.registration.close();
    await this.keyring.close();
    this.kill();
  }
}

/** Opens a bucket in a directory, and says by which URL a command finds it. */
export function directoryBucket(path: string): { bucket: Bucket; url: string } {
  const url = `file://${path}`;
  return { bucket: openBucket(url), url };
}
