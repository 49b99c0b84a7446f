// Runs inside workerd, in the application's own isolate, on every node. It must stay invisible to the application: no name,
// export, class identity, header or stream may look different because of it. It may import nothing but the runtime's own,
// and is one file, longer than ours usually are, because every module here takes a name from the application.
//
//  public entrypoint   calls the application's default export; collects small bodies, strips reserved headers of
//                      answers (the listener before it strips those of requests), turns an uncaught exception into an
//                      answer, counts
//  cell classes        note which cells were opened here and which regular sockets each of them holds; the objects are
//                      instances of the application's class and of nothing else
//  control entrypoint  what celld asks over its own unix socket: counters, to close the regular sockets of cells here, and
//                      on which node a cell is
//  forPeers            what peer.js, whose entrypoint takes the tunnels of peers, has in common with this module
//
// Why sockets are found the way they are: a regular socket can only be touched from the cell that accepted it, and nothing
// tells which cell that is at the moment of accept(). So accept() puts the socket aside, and when a handler of a cell
// ends, that cell looks which of those it may touch: reading `readyState` throws everywhere else.
import { WorkerEntrypoint } from "cloudflare:workers";

/** Bodies with a declared length below this are read whole before the application starts: they survive a hand-off. */
const collectedBodyBytes = 1024 * 1024;
/** Sockets accepted outside any cell are kept aside at most so long; the oldest are forgotten first. */
const unclaimedLimit = 4096;
/** How many cells are asked at a time to close their sockets. */
const closeConcurrency = 64;
/** How many cells are named in an answer of the control entrypoint. */
const listedCells = 10_000;
const closeHeader = "cellkit-close-sockets";
const openHeader = "cellkit-open-cell";
const handlers = ["fetch", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"];

const counters = { requests: 0, inFlight: 0, failed: 0, opened: 0 };
/** The cells opened here, by scope. Eviction is silent: without WeakRef (old compatibility dates) none ever leaves. */
const cells = new Map();
/** The names of the classes that are wrapped. */
const cellNames = new Set();
const recordOf = new WeakMap();
/** Handlers that are wrapped already. */
const watched = new WeakSet();
const unclaimed = new Set();
let token;
/** The node's name, from the first question of the control entrypoint on: celld asks one before it sends anything else. */
let node = "";

// --- the public entrypoint ---------------------------------------------------------------------------------------------

/** An object and not a class: workerd makes an instance of a class for each request, at a fifth of the request's cost. */
export function publicEntrypoint(application) {
  const call = handlerOf(application);
  return {
    async fetch(request, env, ctx) {
      counters.requests += 1;
      counters.inFlight += 1;
      try {
        const whole = hasSmallBody(request)
          ? new Request(request, { body: await request.arrayBuffer() })
          : request;
        const response = await call(whole, env, ctx);
        if (!(response instanceof Response)) {
          throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
        }
        return cleaned(response);
      } catch (error) {
        counters.failed += 1;
        // biome-ignore lint/suspicious/noConsole: this runs in workerd, where the console is the node's log
        console.error(error instanceof Error ? (error.stack ?? String(error)) : error);
        const text = `Worker failed: ${error instanceof Error ? error.message : String(error)}`;
        return new Response(text.slice(0, 4096), {
          status: 500,
          headers: { "content-type": "text/plain;charset=UTF-8", ...outcomeOf(error) },
        });
      } finally {
        counters.inFlight -= 1;
        // Sockets of the Worker itself belong to no cell.
        if (unclaimed.size > 0) ownUnclaimed();
      }
    },
  };
}

/** A cell's owner was lost while the application waited for it (the runtime marks such errors): the call may have run. */
function outcomeOf(error) {
  return error instanceof Error && error.retryable === true ? { "cellkit-outcome": "unknown" } : {};
}

/** workerd itself makes an instance of an entrypoint class for each request, and no instance of another class at all. */
function handlerOf(application) {
  if (typeof application === "function" && application.prototype instanceof WorkerEntrypoint) {
    return (request, env, ctx) => {
      const instance = new application(ctx, env);
      return typeof instance.fetch === "function" ? instance.fetch(request) : missingHandler();
    };
  }
  if (typeof application !== "object" || application === null) return missingHandler;
  return (request, env, ctx) =>
    typeof application.fetch === "function" ? application.fetch(request, env, ctx) : missingHandler();
}

function missingHandler() {
  throw new TypeError("Handler does not export a fetch() function.");
}

function hasSmallBody(request) {
  if (request.body === null || request.headers.has("upgrade")) return false;
  // A GET may declare a length; no Request with a body can be made of one.
  if (request.method === "GET" || request.method === "HEAD") return false;
  // A declared length of 0 counts: its body is a stream too, and a stream cannot be sent again to the next owner.
  const length = Number(request.headers.get("content-length") ?? Number.NaN);
  return length >= 0 && length < collectedBodyBytes;
}

function cleaned(response) {
  const reserved = reservedNames(response.headers);
  if (reserved === undefined) return response;
  let own = response;
  try {
    for (const name of reserved) own.headers.delete(name);
  } catch {
    // An answer of fetch() has immutable headers.
    own = new Response(response.body, response);
    for (const name of reserved) own.headers.delete(name);
  }
  return own;
}

/** The names that only celld and its peers may write, or undefined for none. Names come in lower case from `keys()`. */
function reservedNames(headers) {
  let found;
  for (const name of headers.keys()) {
    if (isReserved(name) || name === "proxy-status") {
      found ??= [];
      found.push(name);
    }
  }
  return found;
}

function isReserved(name) {
  return name.startsWith("x-cells-") || name.startsWith("x-celld-") || name.startsWith("cellkit-");
}

/** For the entrypoint of peers. */
export const forPeers = { cellNames, hasSmallBody, isReserved, outcomeOf };

// --- cells -------------------------------------------------------------------------------------------------------------

export function cellClass(exportName, Base) {
  if (typeof Base !== "function") {
    throw new TypeError(
      `the class ${exportName} has a namespace, but the Worker exports no class of that name`,
    );
  }
  cellNames.add(exportName);
  for (const handler of handlers) watchHandler(Base.prototype, handler);
  // Not a class: that would have to call super() and so make an object of a class that the application does not know.
  function Cell(...args) {
    const instance = Reflect.construct(Base, args, Base);
    openCell(exportName, args[0], instance);
    return instance;
  }
  define(Cell, "name", Base.name, { writable: false });
  Cell.prototype = Base.prototype;
  return Object.setPrototypeOf(Cell, Base);
}

/** Wraps a handler where it is defined, once, however many classes inherit it. */
function watchHandler(prototype, handler) {
  let owner = prototype;
  while (owner !== null && !Object.hasOwn(owner, handler)) owner = Object.getPrototypeOf(owner);
  const descriptor = owner === null ? undefined : Object.getOwnPropertyDescriptor(owner, handler);
  if (typeof descriptor?.value !== "function" || !descriptor.configurable || watched.has(descriptor.value))
    return;
  const run = descriptor.value;
  const watch = {
    [handler](...args) {
      return enter(this, handler, args, run);
    },
  }[handler];
  define(watch, "length", run.length, { writable: false });
  watched.add(watch);
  Object.defineProperty(owner, handler, { ...descriptor, value: watch });
}

function openCell(exportName, ctx, instance) {
  const scope = `${exportName}:${ctx.id.toString()}`;
  const record = {
    scope,
    running: 0,
    sockets: new Set(),
    reference: typeof WeakRef === "function" ? new WeakRef(instance) : undefined,
  };
  counters.opened += 1;
  cells.set(scope, record);
  recordOf.set(instance, record);
  // Handlers written as class fields shadow those of the prototype.
  for (const handler of handlers) {
    const own = Object.getOwnPropertyDescriptor(instance, handler);
    if (typeof own?.value !== "function") continue;
    Object.defineProperty(instance, handler, {
      ...own,
      value: (...args) => enter(instance, handler, args, own.value),
    });
  }
}

function enter(instance, handler, args, run) {
  const record = recordOf.get(instance);
  if (record === undefined) return Reflect.apply(run, instance, args);
  if (handler === "fetch" && args[0] instanceof Request && args[0].headers.has(closeHeader)) {
    return closeSockets(record, args[0].headers.get(closeHeader));
  }
  if (handler === "fetch" && args[0] instanceof Request && args[0].headers.has(openHeader)) {
    return Response.json({ node });
  }
  record.running += 1;
  let result;
  try {
    result = Reflect.apply(run, instance, args);
  } catch (error) {
    leave(record);
    throw error;
  }
  if (typeof result?.then !== "function") {
    leave(record);
    return result;
  }
  return result.then(
    (value) => {
      leave(record);
      return value;
    },
    (error) => {
      leave(record);
      throw error;
    },
  );
}

function leave(record) {
  record.running -= 1;
  claimSockets(record);
}

// --- sockets -----------------------------------------------------------------------------------------------------------

const native = Object.getOwnPropertyDescriptor(WebSocket.prototype, "accept");
const { accept } = {
  accept(...args) {
    const result = Reflect.apply(native.value, this, args);
    if (unclaimed.size >= unclaimedLimit) unclaimed.delete(unclaimed.values().next().value);
    unclaimed.add(this);
    this.addEventListener("close", () => unclaimed.delete(this));
    return result;
  },
};
Object.defineProperty(WebSocket.prototype, "accept", { ...native, value: accept });

function claimSockets(record) {
  for (const socket of ownUnclaimed()) {
    record.sockets.add(socket);
    socket.addEventListener("close", () => record.sockets.delete(socket));
  }
}

/** Takes out the sockets that were accepted where this is called: in this cell, or in this request of the Worker. */
function ownUnclaimed() {
  const own = [...unclaimed].filter(touchable);
  for (const socket of own) unclaimed.delete(socket);
  return own;
}

function touchable(socket) {
  try {
    return socket.readyState !== undefined;
  } catch {
    return false;
  }
}

/** Runs inside the cell. `command` is `<token> <code> <reason>`. */
function closeSockets(record, command) {
  const [sender, code, ...reason] = command.split(" ");
  // Another isolate sent this: the cell moved in the meantime and its sockets are none of the sender's business.
  if (sender !== token) return Response.json({ elsewhere: 1 });
  claimSockets(record);
  const closed = { regular: 0, failed: 0 };
  for (const socket of record.sockets) {
    try {
      socket.close(Number(code), reason.join(" "));
      closed.regular += 1;
    } catch {
      // Closed or broken in the meantime.
      closed.failed += 1;
    }
  }
  record.sockets.clear();
  return Response.json(closed);
}

// --- the control entrypoint --------------------------------------------------------------------------------------------

export function controlEntrypoint() {
  return class CellkitControl extends WorkerEntrypoint {
    async fetch(request) {
      token ??= crypto.randomUUID();
      node = this.ctx.props.node;
      const { pathname, searchParams } = new URL(request.url);
      if (request.method === "GET" && pathname === "/ping") return new Response("ok");
      if (request.method === "GET" && pathname === "/state") return Response.json(state());
      if (request.method === "POST" && pathname === "/close") {
        const command = [token, searchParams.get("code"), searchParams.get("reason")].join(" ");
        return Response.json(await closeAll(this.ctx.exports, command));
      }
      if (request.method === "POST" && pathname === "/open") {
        return Response.json(await open(this.ctx.exports, searchParams.get("scope")));
      }
      return new Response("unknown control request", { status: 404 });
    }
  };
}

function state() {
  prune();
  const residents = [];
  let sockets = 0;
  for (const record of cells.values()) {
    sockets += record.sockets.size;
    if (residents.length < listedCells) residents.push(record.scope);
  }
  return {
    ...counters,
    cells: cells.size,
    residents,
    regularSockets: sockets,
    exact: typeof WeakRef === "function",
  };
}

function prune() {
  for (const [scope, record] of cells) {
    if (record.reference !== undefined && record.reference.deref() === undefined) cells.delete(scope);
  }
}

/** Makes a cell be in memory, wherever it is owned, and says on which node; its application's handlers do not run. */
async function open(exports, scope) {
  const colon = scope.lastIndexOf(":");
  const className = scope.slice(0, colon);
  if (!cellNames.has(className)) return { problem: "class" };
  let cell;
  try {
    cell = exports[className].get(exports[className].idFromString(scope.slice(colon + 1)));
  } catch {
    return { problem: "id" };
  }
  try {
    const answer = await cell.fetch("http://cell/", { headers: { [openHeader]: "1" } });
    return { node: (await answer.json()).node };
  } catch {
    // A class without fetch() cannot be asked; then only a cell here is known.
    prune();
    return cells.has(scope) ? { node } : { problem: "failed" };
  }
}

/** Asks the cells that hold a socket or run a handler: those are here for sure, so no other cell is opened by it. */
async function closeAll(exports, command) {
  const total = { cells: 0, regular: 0, failed: 0, elsewhere: 0 };
  const waiting = [...cells.values()].filter((record) => record.sockets.size > 0 || record.running > 0);
  const work = async () => {
    for (let record = waiting.pop(); record !== undefined; record = waiting.pop()) {
      const [exportName, id] = record.scope.split(":");
      total.cells += 1;
      try {
        const cell = exports[exportName].get(exports[exportName].idFromString(id));
        const answer = await cell.fetch("http://cell/", { headers: { [closeHeader]: command } });
        for (const [name, count] of Object.entries(await answer.json())) total[name] += count;
      } catch {
        // The cell broke, moved or has no fetch handler; its sockets end with it.
        total.failed += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: closeConcurrency }, work));
  return total;
}

function define(target, name, value, descriptor = {}) {
  Object.defineProperty(target, name, {
    configurable: true,
    enumerable: false,
    writable: true,
    ...descriptor,
    value,
  });
}
