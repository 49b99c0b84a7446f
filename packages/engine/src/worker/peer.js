// Runs inside workerd beside runtime.js: where the tunnels of peers come out. A peer names a cell by its scope and reaches
// that cell, wherever it is owned, and nothing else: the control entrypoint has a socket of its own. Tunnels of kind `do`
// and `rpc` come out at two sockets, told apart by `ctx.props` and never by a header, which an application could send.
// docs/protocol/internal-listener.md has the answers.

/** Inner heads carry the version of the protocol, so that a caller knows a node's answer from that of a broken one. */
const versionField = "x-cells-peer-version";
const version = "5";
const scopeForm = /^(?!\.{1,2}$)[A-Za-z0-9_.:$-]{1,255}$/;
/** Most bytes of the arguments of a method: what workerd takes in a call between two of its own. */
const argumentBytes = 32 * 1024 * 1024;

/**
 * @param parts of runtime.js: the names of classes whose objects are cells, which bodies are collected, which fields are
 *   only for nodes, and what an answer says of an error
 */
export function peerEntrypoint({ cellNames, hasSmallBody, isReserved, outcomeOf }) {
  return {
    async fetch(request, _env, ctx) {
      const found = findCell(request.headers, ctx.exports, cellNames);
      if (found instanceof Response) return found;
      const isMethod = ctx.props.kind === "rpc";
      try {
        if (isMethod) return await callMethod(request, found);
        return await fetchCell(request, found, { hasSmallBody, isReserved });
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        const what = isMethod ? "RPC failed" : "cell Worker failed";
        return answer(500, `${what}: ${text}`.slice(0, 4096), outcomeOf(error));
      }
    },
  };
}

/** The cell that the control fields name, or the refusal: in that case nothing ran. */
function findCell(headers, exports, cellNames) {
  const scope = headers.get("x-cells-scope") ?? "";
  const colon = scope.lastIndexOf(":");
  if (!scopeForm.test(scope) || colon < 1) return malformedScope();
  const className = scope.slice(0, colon);
  if (!cellNames.has(className)) return answer(503, "route failed: RuntimeFailed", notRun);
  const namespace = exports[className];
  let id;
  try {
    id = namespace.idFromString(scope.slice(colon + 1));
  } catch {
    // No id, or one of another class.
    return malformedScope();
  }
  const name = headers.get("x-cells-do-name");
  if (name === null) return namespace.get(id);
  const named = namespace.idFromName(name);
  if (!named.equals(id)) {
    return answer(500, "cell Worker failed: x-cells-do-name is not the name of this id", notRun);
  }
  return namespace.get(named);
}

async function fetchCell(request, cell, { hasSmallBody, isReserved }) {
  if (!/^https?:\/\//i.test(request.url)) return answer(400, "the request target is not absolute", notRun);
  const headers = new Headers(request.headers);
  for (const name of request.headers.keys()) if (isReserved(name)) headers.delete(name);
  const body = hasSmallBody(request) ? { body: await request.arrayBuffer() } : {};
  // A socket that nobody asked for: the runtime throws.
  return stamped(await cell.fetch(new Request(request, { headers, ...body })), isReserved);
}

/** The application's answer, without what only nodes say, and with the version. */
function stamped(response, isReserved) {
  const own = new Response(response.body, response);
  for (const name of response.headers.keys()) {
    if (isReserved(name) || name === "proxy-status") own.headers.delete(name);
  }
  own.headers.set(versionField, version);
  return own;
}

async function callMethod(request, cell) {
  const method = request.headers.get("x-cells-rpc-method") ?? "";
  if (method === "") return answer(400, "RPC method header is missing", notRun);
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers.get("content-type") ?? "")) {
    return answer(415, "RPC arguments are not JSON", notRun);
  }
  const bytes = await readArguments(request);
  if (bytes === undefined) return answer(413, "request body too large", notRun);
  const args = parseArguments(bytes);
  if (typeof args === "string") return answer(400, args, notRun);
  // What the stub has itself (fetch, connect, toString, …) is no method of the cell, and would run here.
  if (method in Object.getPrototypeOf(cell) || typeof cell[method] !== "function") {
    return answer(500, `RPC failed: ${method} cannot be called`.slice(0, 4096), notRun);
  }
  const result = await cell[method](...args);
  try {
    const text = JSON.stringify(result ?? null);
    return text === undefined ? answer(500, "RPC failed: the result is not JSON") : answer(200, text);
  } finally {
    result?.[Symbol.dispose]?.();
  }
}

/** Undefined when there are too many. */
async function readArguments(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength;
    if (length > argumentBytes) return undefined;
    chunks.push(chunk);
  }
  return new Blob(chunks).arrayBuffer();
}

function parseArguments(bytes) {
  if (bytes.byteLength === 0) return [];
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return "JSON RPC arguments are not UTF-8";
  }
  try {
    const args = JSON.parse(text);
    return Array.isArray(args) ? args : "JSON RPC arguments are not an array";
  } catch {
    return "JSON RPC arguments are not JSON";
  }
}

const notRun = { "cellkit-outcome": "not-run" };

function malformedScope() {
  return answer(400, '{"error":"malformed_cell_scope"}', notRun);
}

/** Bare text that is called JSON, as every node sends it. */
function answer(status, text, fields = {}) {
  const headers = { "content-type": "application/json", [versionField]: version, ...fields };
  return new Response(text, { status, headers });
}
