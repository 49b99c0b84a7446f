/** The agents of a qualification, and how one is had when another died. */
import type { OpenLedgerOptions } from "../open-ledger.ts";
import type { FileSystem } from "../posix/file-systems.ts";
import { fileSystemOf } from "../posix/file-systems.ts";
import { Agent, type AgentPlace } from "./agent-connection.ts";

/** What the checks are given. */
export class Stage {
  readonly url: string;
  readonly probe: string;
  readonly bucket: OpenLedgerOptions["bucket"];
  /** The first one is this machine. */
  readonly places: readonly AgentPlace[];
  /** Those of them that are at work; each check finds all of them alive. */
  readonly agents: Agent[] = [];
  readonly signal: AbortSignal | undefined;
  /** Of a directory. */
  fileSystem: FileSystem | undefined;
  /** The machines on which the probe's directory is not there. */
  readonly blind = new Set<string>();
  /** The machines that the places turned out to be. */
  readonly machines = new Map<string, string>();
  /** How far the clocks of the agents' machines are from this one's, at most. */
  clockSkewMs = 0;
  #number = 0;
  #round = 0;

  constructor(parts: Pick<Stage, "url" | "probe" | "bucket" | "places" | "signal">) {
    this.url = parts.url;
    this.probe = parts.probe;
    this.bucket = parts.bucket;
    this.places = parts.places;
    this.signal = parts.signal;
  }

  /** Starts one more, which is not among `agents`: for a check that kills it. */
  async start(place: AgentPlace): Promise<Agent> {
    this.signal?.throwIfAborted();
    const agent = await Agent.start(place, ++this.#number, this.signal);
    const sentMs = Date.now();
    try {
      const { fileSystem, seesProbe, machine, timeMs } = await agent.ask("begin", { probe: this.probe });
      this.machines.set(place.name, machine);
      if (seesProbe === false) this.blind.add(place.name);
      // Its clock was read at some time between the two readings of ours.
      const skewMs = Math.max(0, sentMs - timeMs, timeMs - Date.now());
      this.clockSkewMs = Math.max(this.clockSkewMs, skewMs);
      if (fileSystem !== undefined && this.fileSystem?.kind !== "memory")
        this.fileSystem = worse(this.fileSystem, fileSystemOf(fileSystem));
      return agent;
    } catch (error) {
      await agent.close();
      throw error;
    }
  }

  /** Starts as many again as died. */
  async refill(counts: ReadonlyMap<AgentPlace, number>): Promise<void> {
    const alive = this.agents.filter(({ isAlive }) => isAlive);
    const missing = [...counts].flatMap(([place, count]) =>
      Array.from({ length: count - alive.filter((agent) => agent.place === place).length }, () => place),
    );
    const started = await Promise.all(missing.map((place) => this.start(place)));
    this.agents.splice(0, this.agents.length, ...alive, ...started);
  }

  /** A word that no check before has used: for ids and names of files. */
  word(): string {
    return `r${++this.#round}`;
  }

  /** All pairs of different agents, those of different machines first, at most `count`. */
  pairs(count: number): Array<readonly [Agent, Agent]> {
    const pairs = this.agents.flatMap((one) =>
      this.agents.filter((other) => other !== one).map((other) => [one, other] as const),
    );
    const apart = pairs.filter(([one, other]) => one.place !== other.place);
    return [...apart, ...pairs.filter(([one, other]) => one.place === other.place)].slice(0, count);
  }

  async close(): Promise<void> {
    await Promise.all(this.agents.splice(0).map((agent) => agent.close()));
  }
}

/** Of two views of one directory, the one that asks for more proof. */
function worse(one: FileSystem | undefined, other: FileSystem): FileSystem {
  const order = { memory: 2, shared: 1, local: 0 };
  return one === undefined || order[other.kind] > order[one.kind] ? other : one;
}
