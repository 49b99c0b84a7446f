// Time that stands still until a test moves it: a machine that is busy may pause this process for seconds, and nothing runs out by that.
import { Socket } from "node:net";
import { onTestFinished, vi } from "vitest";

/** Timers and the clock that routers measure by, for the rest of the test; intervals and the timeouts of sockets go on. */
export function holdTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** Timeouts of sockets that run out when a test says, for the rest of the test. */
export interface HeldSocketTimeouts {
  /** Lets those of so many milliseconds run out, and says how many there were. */
  expire(timeoutMs: number): number;
}

/** No socket has waited for too long before the test says so. */
export function holdSocketTimeouts(): HeldSocketTimeouts {
  const held = new Map<Socket, number>();
  const spy = vi.spyOn(Socket.prototype, "setTimeout").mockImplementation(function (
    this: Socket,
    timeoutMs,
    callback,
  ) {
    if (timeoutMs === 0) held.delete(this);
    else held.set(this, timeoutMs);
    if (callback !== undefined && timeoutMs !== 0) this.once("timeout", callback);
    return this;
  });
  onTestFinished(() => spy.mockRestore());
  return {
    expire(timeoutMs) {
      const due = [...held].filter(([socket, ms]) => ms === timeoutMs && !socket.destroyed);
      for (const [socket] of due) socket.emit("timeout");
      return due.length;
    },
  };
}
