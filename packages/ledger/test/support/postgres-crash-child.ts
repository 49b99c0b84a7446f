/** Dies between the messages of its connections: before what it sends has left, after it has, and before what came is read. */
import { Socket } from "node:net";
import { openPostgresLedger } from "../../src/postgres/index.ts";
import { runCrashChild } from "./crash-child.ts";

/** The server's address is for the environment: the task's place names the ledger. */
const connectionString = process.env["CELLKIT_TEST_POSTGRES"];

await runCrashChild((name, options, pass) => {
  /** A socket that passes a crash point at each write, once it is written, and at each chunk that comes. */
  class CrashingSocket extends Socket {
    override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
      pass();
      super._write(chunk, encoding, (error) => {
        pass();
        done(error);
      });
    }

    override push(chunk: Buffer | null): boolean {
      if (chunk !== null) pass();
      return super.push(chunk);
    }
  }
  const stream = () => new CrashingSocket();
  return openPostgresLedger({
    ...options,
    name,
    connection: { connectionString, stream },
    connectionCount: 4,
  });
});
