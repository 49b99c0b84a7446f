// Small HTTP questions to the child: its control socket and the readiness of its cluster port.
import { request } from "node:http";
import { z } from "zod";
import { ControlError } from "./errors.ts";
import type { ClosedCells } from "./node-engine.ts";

/** A cell whose owner has died is taken over within 20 s, but nobody waits for that. */
const openTimeoutMs = 15_000;
const answerBytes = 8 * 1024 * 1024;

const stateSchema = z.object({
  requests: z.number(),
  inFlight: z.number(),
  failed: z.number(),
  opened: z.number(),
  cells: z.number(),
  residents: z.array(z.string()),
  regularSockets: z.number(),
  exact: z.boolean(),
});
const closedSchema = z.object({
  cells: z.number(),
  regular: z.number(),
  failed: z.number(),
  elsewhere: z.number(),
});

const openedSchema = z.union([
  z.object({ node: z.string().min(1) }),
  z.object({ problem: z.enum(["class", "id", "failed"]) }),
]);

/** What the entry module counts. */
export type EntryState = z.infer<typeof stateSchema>;
/**
 * The counters of the entry module.
 *
 * @throws ControlError (CELLKIT_ENGINE_CONTROL) without a right answer within `timeoutMs`
 */
export async function readEntryState(socketPath: string, timeoutMs: number): Promise<EntryState> {
  return parseAnswer(stateSchema, await ask({ socketPath, path: "/state", method: "GET", timeoutMs }));
}

const closeCode = 1012;
const closeReason = "node draining";

/**
 * Closes the regular sockets of cells here with 1012 `node draining`, from inside.
 *
 * @throws ControlError (CELLKIT_ENGINE_CONTROL) without a right answer within `timeoutMs`
 */
export async function closeCellSockets(socketPath: string, timeoutMs: number): Promise<ClosedCells> {
  const path = `/close?${new URLSearchParams({ code: String(closeCode), reason: closeReason })}`;
  const answer = await ask({ socketPath, path, method: "POST", timeoutMs });
  const { cells, regular, failed } = parseAnswer(closedSchema, answer);
  return { cells, regularSockets: regular, failed };
}

/** The node on which a cell is, after it was opened, or why that is not known. */
export type OpenedCell = z.infer<typeof openedSchema>;

/**
 * Opens a cell, and asks on which node it is.
 *
 * @throws ControlError (CELLKIT_ENGINE_CONTROL) without a right answer within `timeoutMs`
 */
export async function openCell(
  socketPath: string,
  scope: string,
  timeoutMs = openTimeoutMs,
): Promise<OpenedCell> {
  const path = `/open?${new URLSearchParams({ scope })}`;
  return parseAnswer(openedSchema, await ask({ socketPath, path, method: "POST", timeoutMs }));
}

/** Whether the entry module answers. */
export async function entryAnswers(socketPath: string, timeoutMs: number): Promise<boolean> {
  return await succeeds({ socketPath, path: "/ping", method: "GET", timeoutMs });
}

/** Whether the process serves, holds its lease and is not stopping. False also when nothing answers. */
export async function clusterReady(port: number, timeoutMs: number): Promise<boolean> {
  return await succeeds({ host: "127.0.0.1", port, path: "/ready", method: "GET", timeoutMs });
}

async function succeeds(question: Question): Promise<boolean> {
  try {
    return (await ask(question)).status === 200;
  } catch {
    return false;
  }
}

interface Question {
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly timeoutMs: number;
}

function parseAnswer<Schema extends z.ZodType>(schema: Schema, answer: Answer): z.infer<Schema> {
  if (answer.status !== 200)
    throw new ControlError(`the entry module answered ${answer.status}: ${answer.text.slice(0, 200)}`);
  try {
    return schema.parse(JSON.parse(answer.text));
  } catch (cause) {
    throw new ControlError("the entry module gave an answer that cannot be read", { cause });
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

function ask({ timeoutMs, ...options }: Question): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      const detail = cause instanceof Error ? cause.message : String(cause);
      reject(
        new ControlError(`workerd did not answer ${options.method} ${options.path}: ${detail}`, { cause }),
      );
    };
    const signal = AbortSignal.timeout(timeoutMs);
    const asked = request({ ...options, agent: false, signal, headers: { host: "cellkit" } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > answerBytes) response.destroy(new ControlError("the answer is too long"));
      });
      response.once("error", fail);
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.once("error", fail);
    asked.end();
  });
}
