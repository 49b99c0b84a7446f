/** What no program shows by itself, said plainly, and what follows from a qualification. */

import type { FileSystem } from "../posix/file-systems.ts";
import { type LedgerCheck, notTested, type Outcome, passed } from "./check.ts";

/** Which kind of store, who took part, and on which file system. */
export interface Extent {
  kind: "posix" | "bucket" | "postgres";
  /** The places by name, each with what tells its machine from others. */
  machines: ReadonlyMap<string, string>;
  fileSystem: FileSystem | undefined;
}

/** One line of it. */
export interface Told extends Outcome {
  name: string;
  required: boolean;
}

const power = {
  posix:
    "whether fsync reaches the disk shows only when its power is cut, which a program (and a laptop with a battery) cannot do: pull the plug of a test machine during claims, then run `cellkit ledger verify`",
  bucket: "what the store keeps when its own machines lose power is for its maker to say",
  postgres:
    "what the server keeps when it loses power depends on its disk and on fsync: cut the power of a test server during claims",
} as const;

/** The verdict does not rest on these, but for a disk that machines may share and that only one of them was seen on. */
export function untested({ kind, machines, fileSystem }: Extent): Told[] {
  return [
    severalMachines({ kind, machines, fileSystem }),
    told("power-loss", power[kind]),
    told(
      "network-partition",
      "to cut one machine off from the store while it claims or holds the lock needs the network's help",
    ),
    kind === "posix"
      ? told(
          "machine-loss",
          "processes were frozen and killed, no whole machine was: switch one off while it claims; on a network file system its lock stays taken for as long as the server's lease",
        )
      : told(
          "failover",
          "a failover of the store itself was not caused: cause one during claims, and see that nothing acknowledged is lost",
        ),
  ];
}

function severalMachines({ kind, machines, fileSystem }: Extent): Told {
  const name = "several-machines";
  const names = [...machines.keys()].join(", ");
  if (new Set(machines.values()).size > 1)
    return { name, required: true, ...passed(`${names} took part in every check`) };
  const alone = machines.size > 1 ? `${names} are one and the same machine` : "only this machine took part";
  if (kind === "posix" && fileSystem?.kind === "shared")
    return {
      ...told(
        name,
        `${fileSystem.name} may be shared, and ${alone}: start --agent --listen on another one, and give it as --peer`,
      ),
      required: true,
    };
  return told(name, alone);
}

function told(name: string, detail: string): Told {
  return { name, required: false, ...notTested(detail) };
}

/** What whoever runs a ledger there may do, by what was seen. */
export function adviceOf(checks: readonly LedgerCheck[]): string[] {
  return [...adviceOnTimes(checks), ...adviceOnWhatIsOpen(checks)];
}

function adviceOnTimes(checks: readonly LedgerCheck[]): string[] {
  const resultOf = (name: string) => checks.find((check) => check.name === name)?.result;
  switch (resultOf("times-coherent")) {
    case "failed":
      return [
        "times are cached: leave trustDirectoryTimes off; each group of claims counts the records then",
      ];
    case "passed":
      return [
        resultOf("several-machines") === "passed"
          ? "times of directories are coherent between these machines: trustDirectoryTimes may be set, claims need not count the records then"
          : "times of directories are coherent on this machine; whether trustDirectoryTimes may be set for a shared disk shows only with --peer on another machine",
      ];
    default:
      return [];
  }
}

/** Why the verdict is `unknown`: what it rests on and could not be tested, each reason once. */
function adviceOnWhatIsOpen(checks: readonly LedgerCheck[]): string[] {
  const names = new Map<string, string[]>();
  for (const { name, result, required, detail } of checks) {
    if (!required || result !== "not-tested") continue;
    const reason = TOO_FEW_CONNECTIONS.test(detail) ? fewConnections : detail;
    names.set(reason, [...(names.get(reason) ?? []), name]);
  }
  return [...names].map(([reason, each]) => `${each.join(", ")} could not be tested: ${reason}`);
}

/** What PostgreSQL says then. */
const TOO_FEW_CONNECTIONS = /SQLSTATE 53300/;

const fewConnections =
  "the server has too few connections for a qualification, each of whose processes takes up to 16: raise max_connections, or give fewer --processes";
