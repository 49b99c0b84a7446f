// The rotation of a plane's three tokens in their documented order: backend (dispatchers and routers together), client (routers, then the
// controller), discovery (routers, then the API server). Each step is looked at from outside before the next one begins. What is already so
// is left as it is, so that a walk that was broken off goes on by being called again.
import { setTimeout as sleep } from "node:timers/promises";
import { type BackendLook, lookAtBackend } from "@cellkit/router";
import { TokenFilesError, TokenRotationError } from "./errors.ts";
import { heardBy, nameOf, notGiven, without } from "./heard-nodes.ts";
import {
  checkFiles,
  type HeldPair,
  type HeldToken,
  holdPair,
  type TokenFilePair,
  tokensOf,
} from "./held-tokens.ts";
import { instructions, type RotationStep } from "./rotation-steps.ts";
import { checkAccessFiles, type RouterAccess } from "./router-access.ts";
import { probeRouter, type TokenVerdict, toldOf } from "./router-probe.ts";

/** The plane with what its files held. */
interface HeldPlane extends Pick<TokenPlane, "routers" | "dispatchers"> {
  readonly client: HeldPair;
  readonly backend: HeldPair;
  readonly capability: HeldPair | undefined;
}

/** The plane. */
export interface TokenPlane {
  /** The URL of each replica, and not of what balances them. */
  readonly routers: readonly string[];
  /** The origin of each dispatcher, as the routers' list has it. */
  readonly dispatchers: readonly string[];
  readonly client: TokenFilePair;
  readonly backend: TokenFilePair;
  readonly capability: TokenFilePair | undefined;
}

/** How the tokens are rotated. */
export interface RotateTokensOptions extends RouterAccess {
  /** The routers take two tokens of a role for a while (`--next-client-token-file`). @default false */
  readonly overlap?: boolean;
  /** Does a step, with the file of the new token. Without it somebody else does, and the walk waits to see it. */
  readonly perform?: ((step: RotationStep, tokenFile: string) => Promise<void>) | undefined;
  /** How long a step may take to be seen everywhere. */
  readonly stepTimeoutMs: number;
  /** @default 1_000 */
  readonly lookMs?: number;
  readonly onProgress: (line: string) => void;
}

/** What was done. */
export interface StepReport {
  readonly step: RotationStep;
  /** `seen` from outside; `said` by whoever performed it; `untold`: it is for somebody else to do, and cannot be seen from outside. */
  readonly evidence: "seen" | "said" | "untold";
}

/** Places that do not follow, and why. */
type Lagging = readonly { readonly place: string; readonly reason: string }[];

/**
 * Walks the steps.
 * @throws TokenFilesError (`CELLKIT_CLI_TOKEN_FILES`) for tokens that cannot be read, or cannot take each other's place; RouterAccessError
 *   (`CELLKIT_CLI_ROUTER_ACCESS`); TokenRotationError (`CELLKIT_CLI_TOKEN_ROTATION`) when a place does not follow in time, or a router has
 *   dispatchers that were not given; what `perform` throws; the signal's reason
 */
export async function rotateTokens(
  plane: TokenPlane,
  options: RotateTokensOptions,
): Promise<readonly StepReport[]> {
  await checkAccessFiles(options);
  const held: HeldPlane = {
    routers: plane.routers,
    dispatchers: plane.dispatchers,
    client: await holdPair(plane.client),
    backend: await holdPair(plane.backend),
    capability: plane.capability === undefined ? undefined : await holdPair(plane.capability),
  };
  checkFiles(plane);
  const walk = new Walk(held, options);
  await walk.begin();
  const { client, backend, capability } = held;
  if (backend.next !== undefined) await walk.seen("backend", backend.next, walk.backendLagging);
  await walk.callers("client", client);
  if (capability !== undefined) await walk.callers("capability", capability);
  return walk.reports;
}

class Walk {
  readonly reports: StepReport[] = [];
  readonly #plane: HeldPlane;
  readonly #options: RotateTokensOptions;

  constructor(plane: HeldPlane, options: RotateTokensOptions) {
    this.#plane = plane;
    this.#options = options;
  }

  /** Everybody is where a rotation begins, or somewhere on its way. */
  async begin(): Promise<void> {
    const { client, backend, capability } = this.#plane;
    for (const [role, pair] of [["client", client] as const, ["capability", capability] as const]) {
      if (pair === undefined) continue;
      await this.#none(
        `the ${role} tokens`,
        await this.#routersThat(pair, (verdicts) =>
          verdicts.some(({ kind }) => kind === "accepted")
            ? undefined
            : `accepts neither ${role} token (${toldOf(verdicts)})`,
        ),
      );
      this.#differ(role, pair);
    }
    this.#differ("backend", backend);
    const looks = await Promise.all(
      this.#plane.dispatchers.map(async (origin) => ({
        place: origin,
        looks: await Promise.all(tokensOf(backend).map((token) => this.#look(origin, token))),
      })),
    );
    await this.#none(
      "the backend tokens",
      looks.flatMap((each) =>
        each.looks.some(({ report }) => report.status === 200)
          ? []
          : [{ place: each.place, reason: `accepts neither backend token (${reportTold(each.looks[0])})` }],
      ),
    );
    if (backend.next !== undefined) {
      const given = looks.map((each) => nameOf(...each.looks));
      await this.#none(
        "the dispatchers",
        await this.#routersThat(client, (verdicts) => notGiven(verdicts, given)),
      );
    }
    this.#options.onProgress("everybody accepts one of the tokens that were given");
  }

  /** A role that callers have: routers first, then whoever calls. */
  async callers(role: "client" | "capability", { current, next }: HeldPair): Promise<void> {
    if (next === undefined) return;
    const caller = role === "client" ? "client-controller" : "capability-api-server";
    const accepted = () => this.#accepting(role, next);
    const only = async () => [...(await accepted()), ...(await this.#refusing(role, current))];
    if (this.#options.overlap !== true) {
      await this.seen(`${role}-routers`, next, only);
      await this.#told(caller, next);
      return;
    }
    // Whoever refuses the old one already has gone through all of this.
    if ((await only()).length === 0) {
      await this.seen(`${role}-routers`, next, only);
      return;
    }
    await this.seen(`${role}-routers-accept`, next, accepted);
    await this.#told(caller, next);
    await this.seen(`${role}-routers`, next, only);
  }

  /** A step that can be seen from outside. */
  async seen(step: RotationStep, next: HeldToken, lagging: () => Promise<Lagging>): Promise<void> {
    const { onProgress, perform, stepTimeoutMs, lookMs = 1_000, signal } = this.#options;
    if ((await lagging()).length === 0) {
      onProgress(`${step}: already so`);
      this.reports.push({ step, evidence: "seen" });
      return;
    }
    onProgress(`${step}: ${instructions[step]}`);
    await perform?.(step, next.file);
    const deadlineMs = performance.now() + stepTimeoutMs;
    let said = "";
    for (;;) {
      signal?.throwIfAborted();
      const late = await lagging();
      if (late.length === 0) break;
      if (performance.now() > deadlineMs) throw new TokenRotationError(step, late);
      const line = `waiting for ${late.map(({ place, reason }) => `${place} (${reason})`).join(", ")}`;
      if (line !== said) onProgress(line);
      said = line;
      await sleep(lookMs, undefined, { ...(signal === undefined ? {} : { signal }) });
    }
    onProgress(`${step}: seen everywhere`);
    this.reports.push({ step, evidence: "seen" });
  }

  /** Dispatchers take the new token and not the old one, and each router hears from all of these nodes. */
  readonly backendLagging = async (): Promise<Lagging> => {
    const { backend, client, dispatchers } = this.#plane;
    const { current, next = current } = backend;
    const names: string[] = [];
    const late = await Promise.all(
      dispatchers.map(async (place) => {
        const look = await this.#look(place, next);
        if (look.report.status !== 200)
          return { place, reason: `does not accept the new backend token (${reportTold(look)})` };
        // Routers leave out the others' reports.
        const name = look.binaryVersion === undefined ? undefined : nameOf(look);
        if (name !== undefined) names.push(name);
        const old = await this.#look(place, current);
        return old.report.status === 401
          ? undefined
          : { place, reason: "still accepts the old backend token" };
      }),
    );
    const routers = await this.#routersThat(client, (verdicts) => {
      // What a router hears with its token is the only sign of it.
      if (names.length === 0)
        return "cannot be seen to have it: no dispatcher gives a compatible report to the new backend token";
      const heard = heardBy(verdicts);
      if (heard === undefined) return `accepts neither client token (${toldOf(verdicts)})`;
      const missing = without(names, heard.nodes);
      return missing.length > 0 ? `does not hear from ${missing.sort().join(", ")}` : undefined;
    });
    return [...late.filter((each) => each !== undefined), ...routers];
  };

  /** A step that only whoever does it knows of. */
  async #told(step: RotationStep, next: HeldToken): Promise<void> {
    const { onProgress, perform } = this.#options;
    onProgress(`${step}: ${instructions[step]}`);
    await perform?.(step, next.file);
    this.reports.push({ step, evidence: perform === undefined ? "untold" : "said" });
  }

  #accepting(role: string, token: HeldToken): Promise<Lagging> {
    return this.#routersThat({ current: token, next: undefined }, ([verdict]) =>
      verdict?.kind === "accepted"
        ? undefined
        : `does not accept the new ${role} token (${toldOf([verdict])})`,
    );
  }

  #refusing(role: string, token: HeldToken): Promise<Lagging> {
    return this.#routersThat({ current: token, next: undefined }, ([verdict]) =>
      verdict?.kind === "refused"
        ? undefined
        : `does not refuse the old ${role} token (${toldOf([verdict])})`,
    );
  }

  async #routersThat(
    pair: HeldPair,
    judge: (verdicts: readonly TokenVerdict[]) => string | undefined,
  ): Promise<Lagging> {
    const found = await Promise.all(
      this.#plane.routers.map(async (place) => {
        const reason = judge(
          await Promise.all(tokensOf(pair).map(({ token }) => probeRouter(place, token, this.#options))),
        );
        return reason === undefined ? [] : [{ place, reason }];
      }),
    );
    return found.flat();
  }

  async #look(origin: string, { token }: HeldToken): Promise<BackendLook> {
    const { signal = new AbortController().signal } = this.#options;
    const look = await lookAtBackend(origin, Buffer.from(token), { signal });
    signal.throwIfAborted();
    return look;
  }

  /** The new token is another one than the old one. */
  #differ(role: string, { current, next }: HeldPair): void {
    if (current.token !== next?.token) return;
    throw new TokenFilesError(
      `${next.file} has the old ${role} token, or ${current.file} is a file that a step has replaced already: give a copy of the token as it was`,
    );
  }

  async #none(step: string, late: Lagging): Promise<void> {
    if (late.length > 0) throw new TokenRotationError(step, late);
  }
}

function reportTold(look: BackendLook | undefined): string {
  const { status, problem = "no answer" } = look?.report ?? {};
  return status === undefined ? problem : `status ${status}`;
}
