// The dialling end of a tunnel: connect, ask, judge the answer, put records on.

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connectTcp, formatAddress, type PeerAddress, readHead } from "./connection.ts";
import type { AnswerHead } from "./core/answer-head.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { singleHeader } from "./core/header-value.ts";
import { offeringNonce } from "./core/offering-nonce.ts";
import { RecordOpener, RecordSealer } from "./core/record-layer.ts";
import { dialRecords, type RecordsMode } from "./core/records-offer.ts";
import { type Establishment, establishmentRequest, judgeTunnelAnswer } from "./core/tunnel-head.ts";
import type { TunnelKind } from "./core/tunnel-kind.ts";
import { tunnelVersion } from "./core/tunnel-names.ts";
import { PeerOptionError, PeerVersionError, RecordsMissingError, TunnelRefusedError } from "./errors.ts";
import { nonce, nonceRandom } from "./random-ids.ts";
import { RecordStream } from "./record-stream.ts";

/** What a tunnel is to be, and to whom. */
export interface DialTunnelOptions {
  /** The peer's internal listener: `addr` of its node record. */
  address: PeerAddress;
  kind: TunnelKind;
  /** The key that signs: the first one of the fleet. */
  key: FleetKey;
  /** Identity of this node or tool: 1 to 128 of `A–Z a–z 0–9 _ - .`. */
  self: string;
  /** Identity of the peer: `node` of its node record. Another node at the address refuses. */
  destination: string;
  /** See {@link RecordsMode}. @default "offered" */
  records?: RecordsMode;
  /** Whether the peer's node record advertises records: then a tunnel without them is an error. @default false */
  peerHasRecords?: boolean;
  /** Gives up the dialling; it has no effect on the open tunnel. */
  signal?: AbortSignal | undefined;
  /** How long the TCP connection may take. @default 3000 */
  connectTimeoutMs?: number;
  /** How long the peer may take to answer. @default 10000 */
  answerTimeoutMs?: number;
  /** This node's wall clock, milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
}

/** Probes of the kernel find peers that vanished without a FIN. */
const keepAliveProbeMs = 30_000;

/**
 * Opens a tunnel to a peer. In records every byte is encrypted, and a byte that was changed on the way destroys the
 * stream with a PeerRecordError before it is read. Kind `cluster` has records always.
 *
 * Every failure here proves that nothing of a call was sent.
 *
 * @returns a half-open Duplex: `end()` ends one direction. It is a net.Socket when there are no records. A lost tunnel is
 *   an `error` event, never an end: listen for it
 * @throws PeerUnreachableError (CELLKIT_PEER_UNREACHABLE), TunnelRefusedError (CELLKIT_PEER_TUNNEL_REFUSED),
 *   PeerVersionError (CELLKIT_PEER_VERSION), RecordsMissingError (CELLKIT_PEER_RECORDS_MISSING), TunnelHeadError
 *   (CELLKIT_PEER_TUNNEL_HEAD) when the handshake was changed on the way, PeerOptionError (CELLKIT_PEER_OPTION), the
 *   signal's reason
 */
export async function dialTunnel(options: DialTunnelOptions): Promise<Duplex> {
  const { address, kind, key, self, destination, signal, records = "offered", clock = Date.now } = options;
  const { peerHasRecords = false, connectTimeoutMs = 3_000, answerTimeoutMs = 10_000 } = options;
  const where = formatAddress(address);
  const wanted = dialRecords({ mode: records, kind, peerHasRecords });
  if (wanted === undefined) throw new PeerOptionError("records", `is off: a ${kind} tunnel is never without`);
  const socket = await connectTcp(address, connectTimeoutMs, signal);
  const establishment: Establishment = {
    key,
    host: where,
    source: self,
    destination,
    timeMs: clock(),
    nonce: wanted.offer ? offeringNonce(key, nonceRandom()) : nonce(),
    kind,
    recordsNonce: wanted.offer ? nonce() : undefined,
  };
  try {
    socket.write(establishmentRequest(establishment));
  } catch (error) {
    socket.destroy();
    throw error;
  }
  const { head, rest } = await readHead(socket, where, { timeoutMs: answerTimeoutMs, signal });
  try {
    socket.setKeepAlive(true, keepAliveProbeMs);
    return open(socket, { where, head, rest, answer: judgeTunnelAnswer(head, establishment, wanted) });
  } catch (error) {
    socket.on("error", () => undefined);
    socket.destroy();
    throw error;
  }
}

interface Answered {
  where: string;
  head: AnswerHead;
  rest: Uint8Array;
  answer: ReturnType<typeof judgeTunnelAnswer>;
}

function open(socket: Socket, { where, head, rest, answer }: Answered): Duplex {
  switch (answer.outcome) {
    case "incompatible":
      throw new PeerVersionError(answer.version, tunnelVersion);
    case "without-records":
      throw new RecordsMissingError(where);
    case "stale":
    case "refused": {
      const status = answer.outcome === "stale" ? 409 : answer.status;
      const dateMs = Date.parse(singleHeader(head.headers, "date") ?? "");
      throw new TunnelRefusedError(where, {
        status,
        staleOwner: answer.outcome === "stale",
        dateMs: Number.isNaN(dateMs) ? undefined : dateMs,
      });
    }
    case "open": {
      const { keys } = answer;
      if (keys !== undefined) {
        const [sealer, opener] = [new RecordSealer(keys.dialler), new RecordOpener(keys.listener)];
        return new RecordStream(socket, { sealer, opener, rest });
      }
      if (rest.length > 0) socket.unshift(rest);
      return socket;
    }
  }
}
