// Everything that can be learnt of a router's configuration without starting it: `cellkit router check`.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { certificateAge, certificateDateProblem } from "@cellkit/daemon";
import { readCertificate } from "../certificate.ts";
import type { RouterConfig } from "../config.ts";
import type { Credentials } from "../core/credentials.ts";
import { maxProbedCount } from "../core/decide.ts";
import { parseOrigin } from "../core/origin.ts";
import { CertificateError, CredentialError } from "../errors.ts";
import { credentialsOf, lookUpBackends } from "../wiring.ts";
import { type BackendLook, lookAtBackend } from "./backend-look.ts";
import { capacityOf, checkRecords, findLedger } from "./check-ledger.ts";
import { checkReplicas } from "./check-replicas.ts";
import type { CheckResult } from "./check-result.ts";
import { judgeBackend, judgeNames, nodeNamesOf } from "./judge-backend.ts";

/** How a check is made. */
export interface RouterCheckOptions {
  /** How often each backend is asked, over fresh connections. @default 5 */
  readonly roundCount?: number;
  /** Hears each result as it is found. */
  readonly onResult?: (result: CheckResult) => void;
  readonly signal?: AbortSignal | undefined;
}

/** How many addresses of a name are asked one by one. */
const maxAddressCount = 16;

/**
 * Checks tokens, certificate, ledger, backends, and replicas that run. Changes nothing: no ledger is made, nothing is submitted, no note
 * is left. What a balancer shows depends on its mood: one that keeps a caller at one node cannot be told from a dispatcher.
 * @throws the signal's reason
 */
export async function checkRouter(
  config: RouterConfig,
  options: RouterCheckOptions = {},
): Promise<readonly CheckResult[]> {
  const { roundCount = 5, onResult, signal = new AbortController().signal } = options;
  const results: CheckResult[] = [];
  const add = (result: CheckResult): void => {
    results.push(result);
    onResult?.(result);
  };

  const credentials = checkTokens(config, add);
  if (config.tlsCert !== undefined && config.tlsKey !== undefined)
    add(await checkCertificate(config.tlsCert, config.tlsKey));
  const origins = await checkList(config, add);
  const { ledger, result } = await findLedger(config);
  add(result);
  if (ledger !== undefined)
    try {
      signal.throwIfAborted();
      add(await checkRecords(ledger, { capacity: capacityOf(config), origins, signal }));
      add(await checkReplicas(config, ledger, credentials));
    } finally {
      await ledger.close();
    }
  signal.throwIfAborted();
  if (credentials === undefined && origins.length > 0)
    add({ name: "backends", verdict: "not-tested", detail: "they cannot be asked without the tokens" });
  if (credentials === undefined) return results;
  const names = new Map<string, readonly string[]>();
  const found = await Promise.all(
    origins.map(async (origin) => ({
      origin,
      looks: await looksAt(origin, credentials.backend, { roundCount, signal }),
    })),
  );
  signal.throwIfAborted();
  // In the order of the list, so that two checks can be compared.
  for (const { origin, looks } of found) {
    names.set(origin, nodeNamesOf(looks));
    add(judgeBackend(origin, looks));
  }
  const twice = judgeNames(names);
  if (twice !== undefined) add(twice);
  return results;
}

function checkTokens(config: RouterConfig, add: (result: CheckResult) => void): Credentials | undefined {
  const name = "tokens";
  const problems: string[] = [];
  try {
    const credentials = credentialsOf(config, (error, leftOut) => {
      const effect = leftOut === "discovery" ? "discovery is refused" : "there is no second token";
      problems.push(`${effect}: ${error.message}`);
    }).load();
    const { client, capability } = credentials;
    const said = `${client.length} of clients, 1 of backends, ${capability.length} of discovery; all different`;
    if (problems.length === 0) add({ name, verdict: "passed", detail: said });
    else add({ name, verdict: "warning", detail: problems.join("; ") });
    return credentials;
  } catch (error) {
    if (!(error instanceof CredentialError)) throw error;
    add({ name, verdict: "failed", detail: error.message });
    return undefined;
  }
}

async function checkCertificate(certPath: string, keyPath: string): Promise<CheckResult> {
  const name = "certificate";
  try {
    const pair = await readCertificate({ certPath, keyPath });
    const detail = `for ${pair.names ?? "no name"}, until ${new Date(pair.validToMs).toISOString()}`;
    const problem = certificateDateProblem(pair, Date.now());
    if (problem !== undefined) return { name, verdict: "failed", detail: `${detail}: it ${problem}` };
    const isEnding = certificateAge(pair, Date.now()) === "ending";
    return { name, verdict: isEnding ? "warning" : "passed", detail };
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return { name, verdict: "failed", detail: error.message };
  }
}

/** The dispatchers that there are. */
async function checkList(
  config: RouterConfig,
  add: (result: CheckResult) => void,
): Promise<readonly string[]> {
  const name = "list";
  const { origins, problem } = await lookUpBackends(config);
  const detail = `${origins.length} ${origins.length === 1 ? "dispatcher" : "dispatchers"}`;
  if (origins.length === 0 && problem !== undefined)
    add({ name, verdict: "failed", detail: `${problem}: every submission would get 503` });
  else if (problem !== undefined) add({ name, verdict: "failed", detail: `${detail}; ${problem}` });
  else if (origins.length > maxProbedCount)
    add({
      name,
      verdict: "warning",
      detail: `${detail}; discovery is refused with more than ${maxProbedCount}`,
    });
  else add({ name, verdict: "passed", detail });
  return origins;
}

/** Each address of the origin's name in turn, and each at least as often as asked, over fresh connections. */
async function looksAt(
  origin: string,
  token: Uint8Array,
  { roundCount, signal }: { roundCount: number; signal: AbortSignal },
): Promise<readonly BackendLook[]> {
  const addresses = await addressesOf(origin);
  const looks: BackendLook[] = [];
  for (let round = 0; round < Math.max(roundCount, addresses.length) && !signal.aborted; round++) {
    const look = await lookAtBackend(origin, token, { signal, address: addresses[round % addresses.length] });
    looks.push(look);
    // One that does not answer takes long, and its next silence would tell nothing more; another address might.
    if (look.health.status === undefined && round + 1 >= addresses.length) break;
  }
  return looks;
}

/** Empty where there is no choice. */
async function addressesOf(origin: string): Promise<readonly string[]> {
  const parsed = parseOrigin(origin);
  if ("problem" in parsed || isIP(parsed.host) !== 0) return [];
  try {
    const found = await lookup(parsed.host, { all: true });
    // A router takes the first; those of the other kind are the same machine's other stack more often than not.
    const alike = found.filter(({ family }) => family === found[0]?.family);
    return alike.length < 2 ? [] : alike.slice(0, maxAddressCount).map(({ address }) => address);
  } catch {
    // The looks tell of it in the words of a call.
    return [];
  }
}
