import { createServer, type Server } from "node:net";
import { chunks, type MessageEndFn } from "../core/message-ends.ts";
import { TestingOptionError } from "../errors.ts";
import { listen } from "../listen.ts";
import { until, type WaitOptions } from "../wait-until.ts";
import { ProxiedConnection } from "./proxied-connection.ts";
import type { NetworkFault, ProxiedMessage } from "./proxied-message.ts";

/** Options of {@link faultProxy}. */
export interface FaultProxyOptions {
  /**
   * Where messages end, for faults between them. `out` and `back` for one direction each, called once for each connection
   * when it needs a state of its own. @default each piece that comes is a message
   */
  readonly messages?:
    | MessageEndFn
    | { readonly out?: () => MessageEndFn; readonly back?: () => MessageEndFn };
  /** What happens to each message. @default all pass, but for what {@link FaultProxy.next} says */
  readonly choose?: (message: ProxiedMessage) => NetworkFault;
}

/** Which messages are meant; each member that is left out fits all. */
export type MessageMatch = Partial<Pick<ProxiedMessage, "direction" | "connection" | "index">>;

/** A TCP proxy that does to connections what networks do. */
export interface FaultProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `http://host:port`. */
  readonly url: string;
  /** Every message that came, in order, as it came. */
  readonly seen: readonly ProxiedMessage[];
  /** Connections that are open. */
  readonly openCount: number;
  /** Something happens to the next message that fits. Comes before `choose`. */
  next(match: MessageMatch, fault: NetworkFault): void;
  /** Waits until so many messages that fit have come, and answers the last of these. @throws WaitTimeoutError */
  received(match: MessageMatch, options?: WaitOptions & { count?: number }): Promise<ProxiedMessage>;
  /** Does it to every open connection; new ones are as good as ever. */
  strike(what: "reset" | "end" | "freeze"): void;
  /** New connections are refused by the system. */
  refuse(): void;
  /** Listens again, at the same port. @throws ListenError (`CELLKIT_TESTING_LISTEN`) */
  heal(): Promise<void>;
  /** Cuts all. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts a TCP proxy on 127.0.0.1.
 *
 * @param target where connections go on to: `host:port`, or a URL, whose path is not looked at
 * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`), ListenError (`CELLKIT_TESTING_LISTEN`)
 */
export async function faultProxy(target: string, options: FaultProxyOptions = {}): Promise<FaultProxy> {
  const proxy = new TcpFaultProxy(parseTarget(target), options);
  await proxy.heal();
  return proxy;
}

class TcpFaultProxy implements FaultProxy {
  readonly host = "127.0.0.1";
  readonly seen: ProxiedMessage[] = [];
  readonly #target: { host: string; port: number };
  readonly #options: FaultProxyOptions;
  readonly #open = new Set<ProxiedConnection>();
  readonly #waiting: { match: MessageMatch; fault: NetworkFault }[] = [];
  #server: Server | undefined;
  #count = 0;
  port = 0;

  constructor(target: { host: string; port: number }, options: FaultProxyOptions) {
    this.#target = target;
    this.#options = options;
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  get openCount(): number {
    return this.#open.size;
  }

  next(match: MessageMatch, fault: NetworkFault): void {
    this.#waiting.push({ match, fault });
  }

  received(
    match: MessageMatch,
    { count = 1, ...options }: WaitOptions & { count?: number } = {},
  ): Promise<ProxiedMessage> {
    return until(
      `${count} messages through the proxy`,
      () => this.seen.filter((message) => fits(match, message))[count - 1],
      options,
    );
  }

  strike(what: "reset" | "end" | "freeze"): void {
    for (const connection of this.#open) connection[what]();
  }

  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  async heal(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const connection = new ProxiedConnection(near, {
        index: this.#count++,
        target: this.#target,
        ends: (direction) => this.#ends(direction),
        choose: (message) => this.#choose(message),
        closed: (gone) => this.#open.delete(gone),
      });
      this.#open.add(connection);
    });
    this.port = await listen(server, { host: this.host, port: this.port });
    this.#server = server;
  }

  async close(): Promise<void> {
    this.refuse();
    this.strike("reset");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ends(direction: ProxiedMessage["direction"]): MessageEndFn {
    const { messages = chunks } = this.#options;
    return typeof messages === "function" ? messages : (messages[direction]?.() ?? chunks);
  }

  #choose(message: ProxiedMessage): NetworkFault {
    this.seen.push(message);
    const at = this.#waiting.findIndex(({ match }) => fits(match, message));
    const [next] = at < 0 ? [] : this.#waiting.splice(at, 1);
    return next?.fault ?? this.#options.choose?.(message) ?? { kind: "pass" };
  }
}

function fits(match: MessageMatch, message: ProxiedMessage): boolean {
  return Object.entries(match).every(([name, value]) => message[name as keyof MessageMatch] === value);
}

const ports: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

function parseTarget(target: string): { host: string; port: number } {
  const text = target.includes("://") ? target : `tcp://${target}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const port = url === undefined || url.port === "" ? ports[url?.protocol ?? ""] : Number(url.port);
  if (url === undefined || url.hostname === "" || port === undefined || port === 0) {
    throw new TestingOptionError("target", `is ${JSON.stringify(target)}; give a URL or host:port`);
  }
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port };
}
