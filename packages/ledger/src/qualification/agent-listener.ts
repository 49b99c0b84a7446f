/** Agents for the qualifications of other machines: each connection that knows the secret has a process of its own here. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { z } from "zod";
import { LedgerAgentError } from "../errors.ts";
import { type AgentChannel, checkSecret, openChannel } from "./agent-channel.ts";
import { type AgentCommand, type AgentPlace, type AgentSignal, localPlace } from "./agent-connection.ts";
import { jsonOf } from "./lines.ts";

/** Agents at a time. */
const MAX_AGENTS = 32;

/** Connections that have proven nothing yet. One more ends the oldest of them, so that nobody keeps others out by silence. */
const MAX_UNPROVEN = 32;

const CONNECT_MS = 10_000;

/** A qualification that says nothing for so long is gone without a word, as after the loss of its machine. */
const SILENCE_MS = 120_000;

/** What is for the process's keeper and not for the process. */
const orderSchema = z.strictObject({ signal: z.enum(["kill", "freeze", "thaw"]) });
const endSchema = z.strictObject({ ended: z.string() });

/** Options of {@link listenForAgents}. */
export interface AgentListenerOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** At least 32 characters, the same on all machines. */
  secret: string;
  /** The program of an agent; it serves one qualification on its standard input and output. */
  agent: AgentCommand;
  /** How many may be at work here at a time. @default 32 */
  maxAgentCount?: number | undefined;
  /** Hears what goes on. */
  onEvent?: (line: string) => void;
}

/** A peer that waits for qualifications. */
export interface AgentListener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Ends its connections and their processes. */
  close(): Promise<void>;
}

/** Waits for qualifications. @throws LedgerAgentError (CELLKIT_LEDGER_AGENT) when the address cannot be had, or for a short secret */
export async function listenForAgents(options: AgentListenerOptions): Promise<AgentListener> {
  const { host, port, secret, agent, maxAgentCount = MAX_AGENTS, onEvent = () => undefined } = options;
  checkSecret(secret);
  const sockets = new Set<Socket>();
  const unproven = new Set<Socket>();
  let agentCount = 0;
  /** A place for an agent; undefined if all are taken. */
  const take = (socket: Socket): (() => void) | undefined => {
    unproven.delete(socket);
    if (agentCount >= maxAgentCount) return undefined;
    agentCount += 1;
    return () => {
      agentCount -= 1;
    };
  };
  const server = createServer((socket) => {
    const from = `${socket.remoteAddress}:${socket.remotePort}`;
    sockets.add(socket);
    unproven.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      unproven.delete(socket);
    });
    const [oldest] = unproven;
    if (unproven.size > MAX_UNPROVEN) oldest?.destroy();
    serve(socket, { secret, agent, from, take, onEvent }).catch((error: unknown) => {
      socket.destroy();
      onEvent(error instanceof Error ? error.message : String(error));
    });
  });
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new LedgerAgentError(`${host}:${port}`, `cannot listen: ${(cause as Error).message}`, { cause });
  }
  const address = server.address();
  const close = async (): Promise<void> => {
    const closed = server.listening ? once(server, "close") : Promise.resolve();
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    host,
    port: typeof address === "object" && address !== null ? address.port : port,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function serve(
  socket: Socket,
  parts: Pick<AgentListenerOptions, "secret" | "agent"> & {
    from: string;
    take: (socket: Socket) => (() => void) | undefined;
    onEvent: (line: string) => void;
  },
): Promise<void> {
  const { secret, from, take, onEvent } = parts;
  socket.setTimeout(SILENCE_MS, () => socket.destroy());
  const channel = await openChannel(socket, "server", { secret, peer: from });
  const giveBack = take(socket);
  if (giveBack === undefined) {
    channel.send(JSON.stringify({ ended: "it is busy: as many agents as it may have are at work there" }));
    socket.end();
    onEvent(`${from}: refused, since as many agents as may be are at work`);
    return;
  }
  try {
    await keepAgent(socket, channel, parts);
  } finally {
    giveBack();
  }
}

/** From the start of an agent's process to its end. */
async function keepAgent(
  socket: Socket,
  channel: AgentChannel,
  parts: Pick<AgentListenerOptions, "agent"> & { from: string; onEvent: (line: string) => void },
): Promise<void> {
  const { from, onEvent } = parts;
  onEvent(`${from}: an agent starts`);
  const link = await localPlace(parts.agent).start({
    onLine: (line) => channel.send(line),
    onEnd: (reason) => {
      if (socket.writable) channel.send(JSON.stringify({ ended: reason }));
      socket.end();
    },
  });
  channel.onLine((line) => {
    const order = orderSchema.safeParse(jsonOf(line));
    if (order.success) link.signal(order.data.signal);
    else link.send(line);
  });
  await new Promise<void>((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve());
  });
  await link.close();
  onEvent(`${from}: its agent is gone`);
}

/**
 * Another machine, which runs `cellkit qualify ledger URL --agent --listen HOST:PORT`.
 * @throws LedgerAgentError (CELLKIT_LEDGER_AGENT) for a short secret
 */
export function peerPlace({
  host,
  port,
  secret,
}: Pick<AgentListenerOptions, "host" | "port" | "secret">): AgentPlace {
  checkSecret(secret);
  const name = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    name,
    start: async ({ onLine, onEnd }, signal) => {
      const socket = connect({ host, port, noDelay: true });
      const bound = AbortSignal.timeout(CONNECT_MS);
      try {
        await once(socket, "connect", {
          signal: signal === undefined ? bound : AbortSignal.any([bound, signal]),
        });
      } catch (cause) {
        socket.destroy();
        signal?.throwIfAborted();
        throw new LedgerAgentError(name, `it cannot be reached: ${(cause as Error).message}`, { cause });
      }
      const channel = await openChannel(socket, "client", { secret, peer: name });
      const gone = new Promise<void>((resolve) => {
        if (socket.destroyed) resolve();
        else socket.once("close", () => resolve());
      });
      socket.once("error", (error) => onEnd(`the connection to it broke: ${error.message}`));
      socket.once("close", () => onEnd("the connection to it ended"));
      channel.onLine((line) => {
        const end = endSchema.safeParse(jsonOf(line));
        if (end.success) {
          onEnd(end.data.ended);
          socket.end();
        } else onLine(line);
      });
      const order = (what: AgentSignal): void => {
        if (socket.writable) channel.send(JSON.stringify({ signal: what }));
      };
      return {
        send: (line) => {
          if (socket.writable) channel.send(line);
        },
        signal: order,
        close: async () => {
          order("kill");
          socket.end();
          await gone;
        },
      };
    },
  };
}
