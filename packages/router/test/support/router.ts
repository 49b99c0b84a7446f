// A router in this process with a ledger in memory, tokens in files, and whatever backends a test wants.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Ledger, openMemoryLedger } from "@cellkit/ledger";
import {
  type CredentialFileOptions,
  createCredentialFiles,
  createRouter,
  type Router,
  type RouterEvent,
  type RouterOptions,
} from "../../src/index.ts";
import { type RawAnswer, rawCall } from "./raw-call.ts";
import type { ScriptedBackend } from "./scripted-backend.ts";

/** The tokens of test routers. */
export const tokens = {
  client: "client-client-client-client",
  backend: "backend-backend-backend-backend",
  capability: "discovery-discovery-discovery",
} as const;

/** A running test router. */
export interface TestRouter extends AsyncDisposable {
  readonly router: Router;
  readonly port: number;
  readonly ledger: Ledger;
  readonly events: RouterEvent[];
  readonly tokenFiles: Record<"client" | "backend" | "capability", string>;
  submit(id: string, headers?: string): Promise<RawAnswer | undefined>;
  read(path: string, token?: string): Promise<RawAnswer | undefined>;
}

/** A whole submission, as bytes. */
export function submission(id: string, headers = ""): string {
  const body = JSON.stringify({ id, task: "x" });
  return `POST /v1/executions HTTP/1.1\r\nAuthorization: Bearer ${tokens.client}\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** A request without a body. */
export function bodiless(method: string, path: string, token: string = tokens.client): string {
  return `${method} ${path} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
}

/** Writes the three tokens into a directory. */
export function writeTokens(directory: string): TestRouter["tokenFiles"] {
  const write = (role: keyof typeof tokens) => {
    const path = join(directory, role);
    writeFileSync(path, tokens[role], { mode: 0o600 });
    return path;
  };
  return { client: write("client"), backend: write("backend"), capability: write("capability") };
}

/** What must come in time does, also on a machine that pauses for seconds. A test that is about a limit sets that one. */
export const patientLimits = {
  headMs: 60_000,
  requestMs: 60_000,
  connectMs: 60_000,
  operationMs: 60_000,
  exchangeMs: 60_000,
  healthMs: 60_000,
} as const;

/** Opens one, with {@link patientLimits} where no others are given. */
export async function openTestRouter(
  backends: readonly ScriptedBackend[],
  {
    credentials,
    limits,
    ...options
  }: Partial<RouterOptions> & { credentials?: Partial<CredentialFileOptions> } = {},
): Promise<TestRouter> {
  const directory = mkdtempSync(join(tmpdir(), "cellkit-router-"));
  const tokenFiles = writeTokens(directory);
  const ledger = options.ledger ?? (await openMemoryLedger());
  const events: RouterEvent[] = [];
  const router = createRouter({
    backends: { origins: async () => backends.map(({ origin }) => origin) },
    tokens: createCredentialFiles({ ...tokenFiles, ...credentials }),
    onEvent: (event) => events.push(event),
    ...options,
    limits: { ...patientLimits, ...limits },
    ledger,
  });
  const { port } = await router.listen({ host: "127.0.0.1", port: 0 });
  return {
    router,
    port,
    ledger,
    events,
    tokenFiles,
    submit: (id, headers) => rawCall(port, submission(id, headers)),
    read: (path, token) => rawCall(port, bodiless("GET", path, token)),
    [Symbol.asyncDispose]: async () => {
      const abort = new AbortController();
      abort.abort();
      await router.stop({ signal: abort.signal });
      await ledger.close();
      rmSync(directory, { recursive: true });
    },
  };
}
