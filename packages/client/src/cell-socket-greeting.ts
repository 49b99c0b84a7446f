// What an application says first on every new connection: its `onOpen`.
import type { Connection } from "./cell-socket-connection.ts";
import type { ResolvedSocketOptions } from "./cell-socket-defaults.ts";
import { checkedSize } from "./cell-socket-outbox.ts";

/** How to greet. */
export interface Greeting
  extends Pick<ResolvedSocketOptions, "onOpen" | "handshakeTimeoutMs" | "maxSendBytes"> {
  readonly attempt: number;
  readonly resumed: boolean;
}

/**
 * Calls `onOpen` and then `done`: in the same tick when it is synchronous. `done` gets the error when it failed or took
 * longer than `handshakeTimeoutMs`, and is called once.
 */
export function greet(connection: Connection, greeting: Greeting, done: (error?: Error) => void): void {
  const { attempt, handshakeTimeoutMs, maxSendBytes, onOpen, resumed } = greeting;
  let pending: void | Promise<void>;
  try {
    pending = onOpen?.({
      attempt,
      node: connection.node.id,
      resumed,
      send(data) {
        checkedSize(data, maxSendBytes);
        connection.send(data);
      },
    });
  } catch (error) {
    done(asError(error));
    return;
  }
  if (pending === undefined) {
    done();
    return;
  }
  let over = false;
  const end = (error?: Error): void => {
    clearTimeout(timer);
    if (!over) done(error);
    over = true;
  };
  const timer = setTimeout(() => {
    end(
      new DOMException(
        `onOpen took longer than ${handshakeTimeoutMs} ms (handshakeTimeoutMs)`,
        "TimeoutError",
      ),
    );
  }, handshakeTimeoutMs);
  // The connection holds the process while it lives.
  timer.unref();
  pending.then(
    () => end(),
    (error: unknown) => end(asError(error)),
  );
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new TypeError("onOpen failed with something that is no Error", { cause: thrown });
}
