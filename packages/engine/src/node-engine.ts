// The seam between celld and whatever runs the cells. Nothing here names workerd.

/**
 * Where an engine is in its life.
 *
 * - `stopped`: not started, or stopped for good
 * - `starting`: being started for the first time
 * - `ready`: serves, or has nothing to serve yet (no deployment)
 * - `restarting`: the process under it died and is being started again
 * - `failed`: a deployment is there but does not load; a new one is waited for
 * - `draining`: hands its cells over
 * - `fenced`: lost its membership; terminal
 */
export type EngineState = "stopped" | "starting" | "ready" | "restarting" | "failed" | "draining" | "fenced";

/** What `closeCells` did. */
export interface ClosedCells {
  /** Cells here that were asked. */
  readonly cells: number;
  /** Regular sockets closed. */
  readonly regularSockets: number;
  /** Sockets or cells that could not be closed: they broke or went away in the meantime. */
  readonly failed: number;
}

/** Counters for `/state` and `/metrics`. A member is true within its stated bound, or undefined when nobody knows. */
export interface EngineSnapshot {
  readonly state: EngineState;
  readonly deployment: DeploymentName | undefined;
  /** Starts of the process under the engine beyond the first. */
  readonly restartCount: number;
  /** Name of the engine's own membership record in the bucket. */
  readonly membership: string | undefined;
  /** Process under the engine, while it runs. */
  readonly pid: number | undefined;
  /** Its resident memory. */
  readonly rssBytes: number | undefined;
  /**
   * Cells open here: an upper bound. Eviction is silent; a cell is counted until its object was collected as garbage, and
   * for Workers with a compatibility date before WeakRef came (2025-05-05) until the process ends (`exactCells` false).
   */
  readonly occupied: number | undefined;
  readonly exactCells: boolean | undefined;
  /** Scopes (`Class:id`) of those cells, at most 10 000. */
  readonly residents: readonly string[] | undefined;
  /** Cells opened since the process under the engine started. */
  readonly openedCells: number | undefined;
  /** Regular sockets that cells here hold, except those accepted by a handler that still runs. */
  readonly regularSockets: number | undefined;
  /** Requests of the public socket since the process under the engine started, those running, those that threw. */
  readonly requests: number | undefined;
  readonly requestsInFlight: number | undefined;
  readonly requestsFailed: number | undefined;
}

/**
 * Where a cell is: on the node of this name, or why that is not known. `class`: the deployment has no such class of cells;
 * `id`: that is no id of the class; `failed`: it cannot be opened, or cannot be asked.
 */
export type CellPlace = { readonly node: string } | { readonly problem: "class" | "id" | "failed" };

/** Which deployment runs. */
export interface DeploymentName {
  readonly scriptName: string;
  readonly version: string;
}

/** How a drain goes. */
export interface DrainOptions {
  /** After so many milliseconds the process is ended whatever it does. */
  readonly deadlineMs: number;
  /** Asked before the process is ended early: true when nothing that came through this node is in flight. Default: always. */
  readonly idle?: () => boolean;
}

/** One node's engine. */
export interface NodeEngine extends AsyncDisposable {
  readonly state: EngineState;
  /**
   * Unix socket that serves the application; undefined while nothing serves. Who forwards requests to it takes the fields
   * of `reservedFieldPrefixes` out of them.
   */
  readonly publicSocket: string | undefined;
  /**
   * Unix socket for the bytes of a peer's tunnel of kind `do`: HTTP/1.1 with absolute URLs and the protocol's control
   * fields, answered with its version field. Only for what a peer has signed. Undefined while nothing serves.
   */
  readonly peerSocket: string | undefined;
  /** The same for tunnels of kind `rpc`. */
  readonly peerRpcSocket: string | undefined;
  /** Request header that carries `request.cf` as JSON on the public socket. Keep its name from clients. */
  readonly cfBlobHeader: string;
  /** Loopback port to which the cluster connections that come over the road are carried; undefined while nothing serves. */
  readonly clusterPort: number | undefined;
  readonly deployment: DeploymentName | undefined;
  /** Names of the deployment's classes whose objects are cells; none while nothing serves. */
  readonly cellClasses: readonly string[];
  /**
   * Starts; resolves when the application answers, or when there is no deployment yet.
   *
   * @throws EngineError subclasses, and errors of the bucket and of the deployment
   */
  start(options?: { signal?: AbortSignal }): Promise<void>;
  /** Whether the node may be sent requests, as of the last second. */
  healthy(): boolean;
  /**
   * Brings a cell into memory, wherever it is owned, and tells the node on which it is then: its constructor runs, none of
   * its handlers do. Of a class without `fetch()` only a cell here is known.
   *
   * @throws EngineStateError (CELLKIT_ENGINE_STATE) while nothing serves, ControlError without an answer
   */
  locateCell(scope: string): Promise<CellPlace>;
  /** Closes the regular sockets of cells here with 1012 `node draining`, from inside the cells. */
  closeCells(): Promise<ClosedCells>;
  /** Hands all cells over and ends. `clean` is false when the time ran out or the process died on the way. */
  drain(options: DrainOptions): Promise<{ clean: boolean }>;
  /** Ends at once; cells here answer elsewhere as soon as the membership is ended. Same as disposing. */
  stop(): Promise<void>;
  snapshot(): Promise<EngineSnapshot>;
}
