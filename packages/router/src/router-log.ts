// What of a router's events people should read. What goes wrong for every request is told once, not once a request.
import type { Logger } from "@cellkit/daemon";
import type { PosixLedgerEvent } from "@cellkit/ledger";
import type { DiscoveryEvent } from "./backend/backend-list.ts";
import { PlacementError } from "./errors.ts";
import type { Mismatch } from "./fingerprint/fingerprint.ts";
import type { RouterEvent } from "./router-event.ts";

/** The same thing is told again after this time, with how often it happened meanwhile. */
const quietMs = 10_000;

/** Beyond so many different things, those whose time is over are forgotten: addresses of dispatchers come and go. */
const maxToldCount = 1_000;

/** The most of a ledger's message that a line shows. */
const maxProblemLength = 500;

/** Writes events into a log. */
export class RouterLog {
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #told = new Map<string, { untilMs: number; count: number }>();
  #credentialProblem: string | undefined;
  #discoveryProblem: string | undefined;

  constructor(log: Logger, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** Whether the tokens could not be used when they were last needed. */
  get hasCredentialProblem(): boolean {
    return this.#credentialProblem !== undefined;
  }

  hear(event: RouterEvent): void {
    switch (event.kind) {
      case "request":
        if (event.status !== undefined && event.refusal !== "credentials" && event.route !== "none")
          this.#credentialsWork();
        this.#log.debug({ ...event, durationMs: Math.round(event.durationMs) }, "answered");
        return;
      case "credentials":
        if (this.#credentialProblem !== event.error.message) this.#log.error(event.error.message);
        this.#credentialProblem = event.error.message;
        return;
      case "dropped":
        this.#tell("dropped", {}, "too many connections: one was closed");
        return;
      case "claim":
        if (event.result === "failed")
          this.#tell(
            `claim ${event.code} ${event.cause}`,
            failureFields(event),
            `${claimProblem(event)}; the caller was told to come again`,
          );
        else if (event.result === "full") this.#tell("full", {}, "the ledger is full: new ids are refused");
        return;
      case "lookup":
        this.#tell(
          `lookup ${event.code}`,
          failureFields(event),
          "the ledger could not be read; the caller was told so",
        );
        return;
      case "uncertain":
        this.#log.warn(
          { backend: event.backend },
          "a submission's outcome is unknown; its dispatcher keeps the id",
        );
        return;
      case "backend":
        if (event.problem !== undefined)
          this.#tell(`backend ${event.backend}`, { backend: event.backend, call: event.call }, event.problem);
        return;
      case "defect":
        this.#log.error(
          { err: event.error },
          event.error instanceof PlacementError
            ? "a placement rule failed; the caller was told to come again"
            : "a failure of the router's own; the caller was told what is safe",
        );
        return;
    }
  }

  hearLedger(event: PosixLedgerEvent): void {
    if (event.kind === "corrupt")
      this.#tell(
        `corrupt ${event.key}`,
        { key: event.key },
        `a record of the ledger cannot be read: ${event.problem}`,
      );
  }

  /** The name that was looked up is `dnsName`: `name` is the daemon's, in every line. */
  hearDiscovery({ name: dnsName, originCount, problem }: DiscoveryEvent): void {
    if (problem !== undefined && problem !== this.#discoveryProblem)
      this.#log.warn(
        { dnsName, problem, kept: originCount },
        "the name of dispatchers cannot be looked up; the last answer stays",
      );
    else if (problem === undefined && this.#discoveryProblem !== undefined)
      this.#log.info({ dnsName, found: originCount }, "the name of dispatchers can be looked up again");
    this.#discoveryProblem = problem;
  }

  /** A token cannot be used, and is left out: discovery's, or a role's second one. */
  hearTokenLeftOut(error: Error, leftOut: "discovery" | "second"): void {
    const effect = leftOut === "discovery" ? "discovery is refused" : "there is no second token";
    this.#tell(`token ${error.message}`, {}, `${error.message}; ${effect} until it can be used`, "error");
  }

  /** The other replica's name is `otherReplica`: `replica` is this one's, in every line. */
  hearMismatch({ replica: otherReplica, part }: Mismatch, state: "begun" | "over"): void {
    const what = part === "backends" ? "list of dispatchers" : part === "ledger" ? "ledger" : `${part} token`;
    const passes = part === "backends" ? "while the list is changed" : "in a rotation";
    const advice =
      part === "ledger"
        ? "one took the other's place while a router ran, and what the one knows can run again through the other: stop submissions, and put the right one back"
        : `give all replicas the same (${passes} this passes)`;
    if (state === "over")
      this.#log.info(
        { otherReplica, part },
        `the replica ${otherReplica} has the same ${what} again, or is gone`,
      );
    else
      this.#log.error({ otherReplica, part }, `the replica ${otherReplica} has another ${what}: ${advice}`);
  }

  #credentialsWork(): void {
    if (this.#credentialProblem === undefined) return;
    this.#credentialProblem = undefined;
    this.#log.info("the tokens can be used again");
  }

  #tell(
    key: string,
    fields: Record<string, unknown>,
    message: string,
    level: "warn" | "error" = "warn",
  ): void {
    const nowMs = this.#nowMs();
    const told = this.#told.get(key);
    if (told !== undefined && nowMs < told.untilMs) {
      told.count += 1;
      return;
    }
    if (this.#told.size >= maxToldCount)
      for (const [other, { untilMs }] of this.#told) if (untilMs <= nowMs) this.#told.delete(other);
    this.#told.set(key, { untilMs: nowMs + quietMs, count: 0 });
    this.#log[level](
      { ...fields, ...(told === undefined || told.count === 0 ? {} : { alsoCount: told.count }) },
      message,
    );
  }
}

type Failure = Extract<RouterEvent, { kind: "lookup" | "claim" }>;

function failureFields({ code, problem, cause }: Failure): Record<string, unknown> {
  return { code, problem: problem?.slice(0, maxProblemLength), cause };
}

function claimProblem({ code, cause }: Failure): string {
  if (code !== "CELLKIT_LEDGER_OWNER") return "the ledger could not be asked";
  return cause === "CELLKIT_ROUTER_PLACEMENT"
    ? "the placement rule failed"
    : "no dispatcher would take new work";
}
