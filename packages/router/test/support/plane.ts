// A whole plane: replicas of the router on one ledger, dispatchers that are found by name, and callers. Everything but the callers, the
// DNS server and a bucket's server is a process that can be killed.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DispatcherProcess, dispatcherProcess } from "@cellkit/testing";
import { until } from "../../../../tools/test-support/until.ts";
import { DnsServer } from "./dns-server.ts";
import { callBytes, executionBytes } from "./execution-request.ts";
import { type LedgerKind, type LedgerPlace, openPlace } from "./ledger-places.ts";
import { type RawAnswer, rawCall } from "./raw-call.ts";
import { RouterProcess, TokenFiles } from "./router-process.ts";
import { TestError } from "./test-error.ts";
import { withinMs } from "./within-ms.ts";

/** What a caller was told about one execution, in the end and on the way. */
export interface Fate {
  readonly id: string;
  /** There was a record of it once: 202 or 200. */
  isAccepted: boolean;
  /** Told that its outcome is unknown. */
  isAmbiguous: boolean;
  /** Every other answer, by its text. */
  readonly told: Set<string>;
}

/** Answers after which the same bytes are sent again at once: nothing was sent, or it becomes a read. */
const again = [
  "ownership unavailable; retry same request without changing id",
  "submission outcome unknown; owner retained; POST will not be replayed",
  "unauthorized",
];
/** Answers of an id that is bound, and whose dispatcher cannot tell more at this moment, or ever. */
export const ownerTexts = {
  lost: "recorded owner unavailable or outcome lost; no reroute or replay",
  removed: "recorded owner removed from configured backends; no reroute",
  interrupted: "interrupted execution requires operator reconciliation; teardown is unproven; do not replay",
} as const;
const owners: readonly string[] = Object.values(ownerTexts);

const routerHost = "127.0.0.5";
const dispatcherHosts = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];

/** Every call has an end, and every execution, too, within this time. */
const settledMs = 60_000;

/** A plane of a test. */
export class Plane implements AsyncDisposable {
  readonly tokens: TokenFiles;
  readonly dns: DnsServer;
  readonly dispatchers: readonly DispatcherProcess[];
  readonly routers: readonly RouterProcess[];
  /** All answers that callers had, by their text. */
  readonly answers = new Set<string>();
  readonly #directory: string;
  readonly #place: LedgerPlace;

  private constructor(parts: {
    directory: string;
    place: LedgerPlace;
    tokens: TokenFiles;
    dns: DnsServer;
    dispatchers: readonly DispatcherProcess[];
    routers: readonly RouterProcess[];
  }) {
    this.#directory = parts.directory;
    this.#place = parts.place;
    this.tokens = parts.tokens;
    this.dns = parts.dns;
    this.dispatchers = parts.dispatchers;
    this.routers = parts.routers;
  }

  /** Two replicas, three dispatchers; undefined where the ledger cannot be had. */
  static async open(kind: LedgerKind): Promise<Plane | undefined> {
    const directory = await mkdtemp(join(tmpdir(), "router-plane-"));
    const place = await openPlace(kind, directory);
    if (place === undefined) {
      await rm(directory, { recursive: true });
      return undefined;
    }
    const tokens = await TokenFiles.create(join(directory, "tokens"));
    const dns = await DnsServer.open();
    dns.state = { kind: "addresses", addresses: dispatcherHosts };
    const dispatchers: DispatcherProcess[] = [];
    let port = 0;
    for (const host of dispatcherHosts) {
      const journal = join(directory, `journal-${host}`);
      const tokenFile = tokens.path("backend");
      const started = await dispatcherProcess({ host, port, journal, tokenFile, run: { afterMs: 20 } });
      port = Number(new URL(started.origin).port);
      dispatchers.push(started);
    }
    const flags = [
      ...place.flags,
      ...tokens.flags,
      `--backends-srv=plane.test:${port}`,
      `--dns-server=${dns.address}`,
    ];
    const routers = ["one", "two"].map(
      (name) => new RouterProcess([...flags, `--replica=${name}`], { host: routerHost, env: place.env }),
    );
    const plane = new Plane({ directory, place, tokens, dns, dispatchers, routers });
    await Promise.all(routers.map((router) => router.start()));
    return plane;
  }

  /** Hosts of dispatchers that the name has now. */
  find(...indexes: readonly number[]): void {
    const addresses = indexes.map((index) => dispatcherHosts[index] as string);
    this.dns.state = { kind: "addresses", addresses };
  }

  /** The name cannot be looked up for now. */
  loseNames(): void {
    this.dns.state = { kind: "failing" };
  }

  /** One call to one replica; undefined without a whole answer. */
  async call(replica: number, line: string, body?: Uint8Array): Promise<RawAnswer | undefined> {
    const router = this.routers[replica % this.routers.length] as RouterProcess;
    const bytes = callBytes(line, this.tokens.token("client"), body);
    const called = rawCall(router.port, bytes, { host: routerHost }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") return undefined;
      throw error;
    });
    const answer = await withinMs(settledMs, `an end of ${line}`, called);
    const length = answer?.fields.find(([name]) => name === "Content-Length")?.[1];
    if (answer === undefined || Number(length) !== answer.body.length) return undefined;
    this.answers.add(answer.text);
    return answer;
  }

  /**
   * What a caller does with one execution: the same bytes until there is a record, or until its owner was asked often enough in vain.
   * @param replica the first to be asked
   */
  async submit(id: string, replica: number): Promise<Fate> {
    const fate: Fate = { id, isAccepted: false, isAmbiguous: false, told: new Set() };
    const body = executionBytes(id);
    let ownerAnswers = 0;
    const deadlineMs = performance.now() + settledMs;
    for (let at = replica; ownerAnswers < 3; at += 1) {
      if (performance.now() > deadlineMs)
        throw new TestError(`${id} is not settled after ${at - replica} tries: ${[...fate.told].join(", ")}`);
      const answer = await this.call(at, "POST /v1/executions", body);
      if (answer?.status === 202 || answer?.status === 200) {
        if (JSON.parse(answer.body).requestId !== id)
          throw new TestError(`another record for ${id}: ${answer.body}`);
        fate.isAccepted = true;
        return fate;
      }
      const text = answer === undefined ? "no answer" : String(JSON.parse(answer.body).error);
      fate.told.add(text);
      if (text.startsWith("submission outcome unknown")) fate.isAmbiguous = true;
      if (owners.includes(text)) ownerAnswers += 1;
      else if (answer !== undefined && !again.includes(text))
        throw new TestError(`${id} was answered ${answer.status} ${answer.body}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return fate;
  }

  /** All of it is up, and every replica knows every dispatcher. */
  async heal(): Promise<void> {
    this.find(0, 1, 2);
    await Promise.all(this.dispatchers.map(async (each) => (each.alive ? each.heal() : each.restart())));
    for (const router of this.routers) {
      await until(
        "a replica that knows all dispatchers",
        async () => {
          const { text } = await router.internal("/metrics");
          this.answers.add(text);
          return text.includes("\nrouter_backends 3\n") && text.includes("\nrouter_replicas 2\n");
        },
        60_000,
      );
    }
  }

  /** Kills a replica, and starts it again. */
  async replace(replica: number): Promise<void> {
    await this.routers[replica]?.kill();
    await this.routers[replica]?.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([
      ...this.routers.map((each) => each.kill()),
      ...this.dispatchers.map((each) => each.close()),
    ]);
    await this.dns[Symbol.asyncDispose]();
    await this.#place[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 10 });
  }
}
