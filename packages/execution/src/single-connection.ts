// The one connection of a call, and whether its other side takes our certificate.
//
// In TLS 1.3 a client's side of the handshake ends before the server has judged the client's certificate (RFC 8446, section 2), so
// what is written at once may be refused unread, and the alert that says so may be lost to a reset. A server that asked for a
// certificate is therefore waited for: its session ticket comes when it is content (section 4.6.1), its alert or its end when not.
// Until then nothing was written, so that a refusal is told for certain. One without tickets is taken for content after a while.
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { buildConnector } from "undici";
import { causeCode } from "./cause-code.ts";
import type { ClientCertificate } from "./client-certificate.ts";

/** What a connection needs to know of its call. */
export interface ConnectionCall {
  /** PEM certificates instead of the system's. */
  readonly ca: string | undefined;
  /** Shown to a server that asks for one. */
  readonly clientCertificate: ClientCertificate | undefined;
  readonly connectTimeoutMs: number;
  /** Ends the call, whatever it waits for. */
  readonly signal: AbortSignal;
}

/** Why a connection was ended from this side; only ever the cause of a public error. */
export class ExchangeEndError extends Error {
  override readonly name = "ExchangeEndError";
}

/** The other side asked for a certificate and then closed without a word, before anything was written. */
class ClientTurnedAwayError extends Error {
  override readonly name = "ClientTurnedAwayError";
}

/** How long a server that asked for a certificate is waited for: some round trips. */
const contentMs = 1_000;

/** The alerts about a client's certificate (RFC 8446, section 6.2), by OpenSSL's names. */
const refusals = /_ALERT_(?:CERTIFICATE_\w+|(?:BAD|UNSUPPORTED)_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)$/;

/** Whether a connection's end means that the other side wants a certificate of ours, or another one. */
export function isClientRefusal(error: unknown): boolean {
  return error instanceof ClientTurnedAwayError || refusals.test(causeCode(error) ?? "");
}

/** Connects once, so that a request cannot leave twice within a call, whatever the HTTP client thinks may be repeated. */
export function singleConnection(
  call: ConnectionCall,
  onConnected: (socket: Socket) => void,
): buildConnector.connector {
  const { clientCertificate: client } = call;
  const connect = buildConnector({
    allowH2: false,
    timeout: call.connectTimeoutMs,
    // Given here it also holds against NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    ...(call.ca === undefined ? {} : { ca: call.ca }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
  });
  let dialled = false;
  return (options, done) => {
    if (dialled) return done(new ExchangeEndError("the connection was closed before an answer"), null);
    dialled = true;
    connect(options, async (...[error, socket]) => {
      if (error !== null) return done(error, null);
      const refusal = asksForCertificate(socket) ? await refusalOf(socket, call.signal) : undefined;
      if (refusal !== undefined) {
        socket.destroy();
        return done(refusal, null);
      }
      onConnected(socket);
      done(null, socket);
    });
  };
}

/** Only a request for a certificate brings a TLS 1.3 client signature algorithms to choose from; before 1.3 the handshake tells all. */
function asksForCertificate(socket: Socket): socket is TLSSocket {
  return (
    socket instanceof TLSSocket && socket.getProtocol() === "TLSv1.3" && socket.getSharedSigalgs().length > 0
  );
}

/** Why the other side did not take our certificate, or undefined when it did, or does not say. */
async function refusalOf(socket: TLSSocket, signal: AbortSignal): Promise<Error | undefined> {
  const verdict = Promise.withResolvers<Error | undefined>();
  // Not at once: a request that is written while Node reads the ticket does not leave.
  const content = () => void setImmediate(verdict.resolve, undefined);
  const closed = () => {
    const what = "it asked for a client certificate and closed the connection";
    verdict.resolve(new ClientTurnedAwayError(what));
  };
  const abandoned = () => void socket.destroy();
  const timer = setTimeout(content, contentMs);
  socket.on("session", content).on("error", verdict.resolve).on("end", closed).on("close", closed);
  signal.addEventListener("abort", abandoned, { once: true });
  if (signal.aborted) abandoned();
  try {
    return await verdict.promise;
  } finally {
    clearTimeout(timer);
    socket.off("session", content).off("error", verdict.resolve).off("end", closed).off("close", closed);
    signal.removeEventListener("abort", abandoned);
  }
}
