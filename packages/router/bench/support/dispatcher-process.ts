// A dispatcher that does no more than the contract asks: its journal has every execution, durably, before the answer (execution API,
// section 10.3). Each is written aside, synced, renamed, and its directory synced.
import { close, fsync, mkdtempSync, open, openSync, rename, rmSync, write } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const calls = {
  open: promisify(open),
  write: promisify(write),
  sync: promisify(fsync),
  close: promisify(close),
  rename: promisify(rename),
};
const directory = mkdtempSync(join(tmpdir(), "cellkit-bench-dispatcher-"));
const directoryFd = openSync(directory, "r");
const records = new Map<string, string>();
let count = 0;

async function journal(record: string): Promise<void> {
  count += 1;
  const path = join(directory, `${count}.json`);
  const fd = await calls.open(`${path}.new`, "wx", 0o600);
  await calls.write(fd, record);
  await calls.sync(fd);
  await calls.close(fd);
  await calls.rename(`${path}.new`, path);
  await calls.sync(directoryFd);
}

function answer(status: number, body: string): string {
  return `HTTP/1.1 ${status} OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}

async function serve(line: string, body: string): Promise<string> {
  const [method, path = ""] = line.split(" ");
  if (path === "/v1/health") return answer(200, '{"ok":true,"kvm":true}');
  if (method === "GET")
    return answer(200, records.get(path.slice("/v1/executions/".length)) ?? '{"error":"unknown"}');
  const { id } = JSON.parse(body) as { id: string };
  // What is held for ever is not journaled: the bench of parked requests.
  if (id.startsWith("held-")) return new Promise(() => undefined);
  const record = JSON.stringify({ requestId: id, phase: "Admitting" });
  await journal(JSON.stringify({ version: 1, request_hash: "", record }));
  records.set(id, record);
  return answer(202, record);
}

const server = createServer({ noDelay: true }, (socket) => {
  let text = "";
  socket.on("error", () => undefined);
  socket.on("data", async (chunk) => {
    text += chunk.toString("latin1");
    const headEnd = text.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const length = Number(/Content-Length: (\d+)/.exec(text)?.[1] ?? 0);
    if (text.length < headEnd + 4 + length) return;
    const [line = ""] = text.split("\r\n", 1);
    socket.end(await serve(line, text.slice(headEnd + 4)));
  });
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);
process.once("disconnect", () => {
  rmSync(directory, { recursive: true });
  process.exit();
});
