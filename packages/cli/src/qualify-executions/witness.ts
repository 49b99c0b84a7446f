// Whether a command of the operator's did what it is for, as far as that is seen from outside: a command that did nothing shows nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { lookAtBackend } from "@cellkit/router";
import { getFromRouter, probeRouter, type TokenVerdict } from "../router-probe.ts";
import { type CheckOutcome, failed, notShown } from "./outcome.ts";
import type { HookName, PlaneUnderTest } from "./plane.ts";

/** Called after the command. Undefined: what it is for was seen. */
export type Witness = () => Promise<CheckOutcome | undefined>;

/** Fresh connections by which a token is shown: each may come to another replica. */
const probeCount = 8;
/** Connections that lie at the router at any time while a replica is killed, so that one of them lies at that replica. */
const watchCount = 8;
/** How long each of them lies there; routers wait longer than that for a request. */
const idleMs = 300;
const pauseMs = 50;

/** All tokens that files were given for are others than before, and nobody takes the old ones. */
export async function witnessRotation(plane: PlaneUnderTest): Promise<Witness> {
  const before = await plane.tokens();
  const { router, backends, signal } = plane.options;
  /** Whether the router says the same of a token over each of several connections. */
  const routerSays = (token: string, kind: TokenVerdict["kind"]) =>
    plane.comes(async () => {
      const probes = Array.from({ length: probeCount }, () =>
        probeRouter(router.url, token, { ...router, signal }),
      );
      return (await Promise.all(probes)).every((verdict) => verdict.kind === kind);
    });
  return async () => {
    const now = await plane.tokens();
    const same = (["client", "backend", "capability"] as const).filter(
      (role) => before[role] !== undefined && now[role] === before[role],
    );
    if (same.length > 0)
      return notShown(
        `the command changed nothing: the old token is in the file of ${same.join(" and of ")}`,
      );
    if (!(await routerSays(before.client, "refused")))
      return failed("the router does not refuse the old client token");
    if (before.capability !== undefined && now.capability !== undefined) {
      if (!(await routerSays(now.capability, "accepted")))
        return failed("the router does not accept the new discovery token");
      if (!(await routerSays(before.capability, "refused")))
        return failed("the router does not refuse the old discovery token");
    }
    const old = Buffer.from(before.backend);
    for (const origin of backends) {
      const refuses = async () => (await lookAtBackend(origin, old, { signal })).report.status === 401;
      if (!(await plane.comes(refuses))) return failed(`${origin} does not refuse the old backend token`);
    }
    return undefined;
  };
}

/** A dispatcher reports another version than before; after a rollback, each the one that it had before the upgrade. */
export async function witnessVersions(plane: PlaneUnderTest, hook: HookName): Promise<Witness> {
  const { backends } = plane.options;
  const before = await versionsOf(plane);
  if (hook === "upgrade") plane.versionsBeforeUpgrade = before;
  const target = hook === "rollback" ? plane.versionsBeforeUpgrade : undefined;
  return async () => {
    const now = await versionsOf(plane);
    if (backends.every((origin) => now.get(origin) === before.get(origin)))
      return notShown(
        `every dispatcher reports the version that it had (${[...new Set(now.values())].join(", ")}): the command changed none, and what it did to routers alone cannot be seen`,
      );
    const other = backends.find((origin) => target !== undefined && now.get(origin) !== target.get(origin));
    return other === undefined
      ? undefined
      : notShown(
          `${other} reports ${now.get(other)}, and had ${target?.get(other)} before the upgrade: the command did not go back`,
        );
  };
}

async function versionsOf(plane: PlaneUnderTest): Promise<ReadonlyMap<string, string>> {
  const versions = new Map<string, string>();
  for (const origin of plane.options.backends)
    await plane.comes(async () => {
      const { binaryVersion } = await plane.look(origin);
      versions.set(origin, binaryVersion ?? "none");
      return binaryVersion !== undefined;
    });
  return versions;
}

/** A watch over the router while a replica is killed. */
export interface RouterWatch {
  /** Connections that were cut, refused, or answered by a status of 500 or more. */
  readonly missedCount: number;
  /** Why nothing was shown; undefined where something was missed, and nothing before. */
  problem(): CheckOutcome | undefined;
  end(): Promise<void>;
}

/** Begins once every connection of a first round was answered. */
export async function watchRouter(plane: PlaneUnderTest): Promise<RouterWatch> {
  const { router, signal } = plane.options;
  const over = new AbortController();
  const bound = AbortSignal.any([signal, over.signal]);
  // Who answers it, and how, does not matter: a router does not know it.
  const isAnswered = async (): Promise<boolean> => {
    try {
      const access = { ...router, signal: bound, idleMs };
      return (await getFromRouter(router.url, "/v1/health", access)).status < 500;
    } catch {
      // What is cut by the end of the watch is nothing that was missed.
      return bound.aborted;
    }
  };
  const first = await Promise.all(Array.from({ length: watchCount }, isAnswered));
  signal.throwIfAborted();
  const isWell = first.every((each) => each);
  let missedCount = 0;
  const loops = Array.from({ length: watchCount }, async () => {
    while (!bound.aborted) {
      if (await isAnswered()) continue;
      missedCount += 1;
      await sleep(pauseMs);
    }
  });
  return {
    get missedCount() {
      return missedCount;
    },
    problem() {
      if (!isWell)
        return notShown(
          "the router did not answer well before the command, so that a loss is not told apart",
        );
      return missedCount > 0
        ? undefined
        : notShown(
            `${watchCount} connections lay at the router all the time, and none was cut or refused: no replica was missed there`,
          );
    },
    async end() {
      over.abort();
      await Promise.all(loops);
    },
  };
}
