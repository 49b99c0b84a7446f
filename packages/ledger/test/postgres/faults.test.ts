import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { LedgerUnavailableError } from "../../src/errors.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { openPostgresLedger, type PostgresLedgerOptions } from "../../src/postgres/index.ts";
import { type Fault, type Message, startPostgresProxy } from "../support/postgres-proxy.ts";
import { PostgresServer } from "../support/postgres-server.ts";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";
/** For what must succeed. */
const PATIENT_MS = 20_000;
const PASS: Fault = { kind: "pass" };
let names = 0;

/** One test's ledger twice: through a proxy with faults, which begin once it is open, and straight. */
async function openBoth(
  running: PostgresServer,
  choose: (message: Message) => Fault,
  options: Partial<PostgresLedgerOptions> = {},
) {
  const name = `faults-${names++}`;
  let armed = false;
  const proxy = await startPostgresProxy(running, (message) => (armed ? choose(message) : PASS));
  const through = await openInTime({
    timeoutMs: PATIENT_MS,
    ...options,
    name,
    connection: `postgresql://postgres@127.0.0.1:${proxy.port}/cells`,
  });
  const straight = await openPostgresLedger({
    ...options,
    name,
    connection: running.url(),
    timeoutMs: PATIENT_MS,
  });
  onTestFinished(async () => {
    await Promise.all([through.close(), straight.close()]);
  });
  armed = true;
  proxy.seen.length = 0;
  return { through, straight, proxy, name };
}

/** A short time is for what comes afterwards; a loaded machine may need several for the opening. */
async function openInTime(options: PostgresLedgerOptions): Promise<StoredLedger> {
  for (let tries = 0; ; tries++) {
    try {
      return await openPostgresLedger(options);
    } catch (error) {
      if (!(error instanceof LedgerUnavailableError) || tries > 50) throw error;
    }
  }
}

/** A fault at the first message that fits; later ones pass. */
function once(fits: (message: Message) => boolean, fault: Fault): (message: Message) => Fault {
  let done = false;
  return (message) => {
    if (done || !fits(message)) return PASS;
    done = true;
    return fault;
  };
}

/** A fault at the first message of a type from one side after the client sent an INSERT. */
function onceAfterInsert(from: Message["from"], type: string, fault: Fault) {
  const inserting = new Set<number>();
  return once((message) => {
    if (message.from === "client" && message.text.includes("INSERT INTO")) inserting.add(message.connection);
    return inserting.has(message.connection) && message.from === from && message.type === type;
  }, fault);
}

const claimA = (ledger: StoredLedger) => ledger.claim("id", "body", async () => A);
const claimB = (ledger: StoredLedger) => ledger.claim("id", "body", async () => B);

/** How a claim within a short time fails once its INSERT was sent: a busy machine may need several tries to come so far. */
async function failureOfSent(ledger: StoredLedger): Promise<unknown> {
  for (;;) {
    const failure = await claimA(ledger).catch((error: unknown) => error);
    if (!(failure instanceof LedgerUnavailableError) || failure.recorded === "maybe") return failure;
  }
}

const updates = (seen: readonly Message[]) => seen.filter(({ text }) => text.includes("SET claim_nonce"));

describe("a connection that is cut while a claim is written", () => {
  it.for<[string, Message["from"], string]>([
    ["before the INSERT has left", "client", "P"],
    ["between the INSERT and its commit", "client", "S"],
    ["after the commit, before any answer", "server", "1"],
    ["between the command's end and the commit's", "server", "C"],
    ["after all but the last message of the answer", "server", "Z"],
  ])("%s: the claim is settled, new, and recorded once", async ([, from, type], { skip }) => {
    const running = server ?? skip();
    const { through, straight } = await openBoth(running, onceAfterInsert(from, type, { kind: "cut" }));
    expect(await claimA(through)).toMatchObject({ kind: "new", owner: { backend: A } });
    expect(await claimB(straight)).toMatchObject({ kind: "existing", owner: { backend: A } });
    expect(await straight.count()).toBe(1);
  });

  it("a row that is found with the own nonce counts only after a commit of its own", async ({ skip }) => {
    const running = server ?? skip();
    const { through, proxy } = await openBoth(running, onceAfterInsert("server", "Z", { kind: "cut" }));
    expect(await claimA(through)).toMatchObject({ kind: "new" });
    expect(updates(proxy.seen)).toHaveLength(1);
  });

  it("a lost INSERT that has not committed yet is waited for", async ({ skip }) => {
    const running = server ?? skip();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { through, straight, proxy } = await openBoth(
      running,
      onceAfterInsert("client", "S", { kind: "deliver-alone", released }),
    );
    const claim = claimA(through);
    // The second try has sent its INSERT and waits at the primary key.
    await expect.poll(() => inserts(proxy.seen), { timeout: 20_000 }).toBe(2);
    await blocked(running);
    release();
    expect(await claim).toMatchObject({ kind: "new", owner: { backend: A } });
    expect(await claimB(straight)).toMatchObject({ kind: "existing", owner: { backend: A } });
  });

  it("an INSERT that arrives after somebody else's claim changes nothing", async ({ skip }) => {
    const running = server ?? skip();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let lost: number | undefined;
    const { through, straight, proxy } = await openBoth(
      running,
      (message) => {
        if (lost !== undefined) return message.connection === lost ? PASS : { kind: "cut" };
        if (message.from !== "client" || !message.text.includes("INSERT INTO")) return PASS;
        lost = message.connection;
        return { kind: "deliver-alone", released };
      },
      { timeoutMs: 1_000 },
    );
    expect(await failureOfSent(through)).toMatchObject({
      code: "CELLKIT_LEDGER_UNAVAILABLE",
      recorded: "maybe",
    });
    expect(await claimB(straight)).toMatchObject({ kind: "new", owner: { backend: B } });
    release();
    await expect
      .poll(() => proxy.seen.some(({ type, text }) => type === "E" && text.includes("23505")), {
        timeout: 20_000,
      })
      .toBe(true);
    expect(await straight.lookup("id")).toMatchObject({ backend: B });
  });

  it("with no way back the answer is ambiguous, and a lookup settles it", async ({ skip }) => {
    const running = server ?? skip();
    let lost = false;
    const lose = onceAfterInsert("server", "Z", { kind: "cut" });
    const { through, straight } = await openBoth(
      running,
      (message) => {
        const fault: Fault = lost ? { kind: "cut" } : lose(message);
        lost ||= fault.kind === "cut";
        return fault;
      },
      { timeoutMs: 1_000 },
    );
    expect(await failureOfSent(through)).toMatchObject({ recorded: "maybe" });
    expect(await straight.lookup("id")).toMatchObject({ backend: A });
    expect(await claimB(straight)).toMatchObject({ kind: "existing", owner: { backend: A } });
  });

  it("under a capacity a lost COMMIT is settled, and the capacity kept", async ({ skip }) => {
    const running = server ?? skip();
    const { through, straight } = await openBoth(
      running,
      once((message) => message.from === "server" && message.text.includes("COMMIT"), { kind: "cut" }),
      { capacity: 1 },
    );
    expect(await claimA(through)).toMatchObject({ kind: "new" });
    expect(await straight.claim("other", "body", async () => B)).toEqual({ kind: "full" });
    expect(await straight.count()).toBe(1);
  });

  it("a lost removal is settled: the record is gone, and a later claim is not touched by it", async ({
    skip,
  }) => {
    const running = server ?? skip();
    const lose = once((message) => message.from === "server" && message.text.includes("DELETE"), {
      kind: "cut",
    });
    const { through, straight } = await openBoth(running, lose, { retirable: true });
    await claimA(straight);
    expect(await through.retire("id", { quarantineMs: 0 })).toBe(true);
    expect(await claimB(straight)).toMatchObject({ kind: "new" });
  });
});

describe("a server that does not answer", () => {
  it("fails a lookup when its time is up, with nothing recorded", async ({ skip }) => {
    const running = server ?? skip();
    const never = new Promise<void>(() => {});
    const { through } = await openBoth(running, () => ({ kind: "hold", released: never }), {
      timeoutMs: 200,
    });
    // Nothing else ends it.
    await expect(through.lookup("id")).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_UNAVAILABLE",
      recorded: "no",
      message: expect.stringMatching(/ within 200 ms/),
    });
  });

  it("does not keep an aborted caller", async ({ skip }) => {
    const running = server ?? skip();
    const never = new Promise<void>(() => {});
    const { through } = await openBoth(running, () => ({ kind: "hold", released: never }), {
      timeoutMs: 1_000,
    });
    const reason = new TypeError("enough");
    const stop = new AbortController();
    const claim = through.claim("id", "body", async () => A, { signal: stop.signal });
    stop.abort(reason);
    await expect(claim).rejects.toBe(reason);
  });

  it("is not waited for longer than that when the ledger is closed", async ({ skip }) => {
    const running = server ?? skip();
    const never = new Promise<void>(() => {});
    const { through } = await openBoth(running, () => ({ kind: "hold", released: never }), {
      timeoutMs: 300,
    });
    await Promise.allSettled([through.lookup("id")]);
    // Nothing else ends it.
    await through.close();
  });
});

it("closing lets a running claim end", async ({ skip }) => {
  const running = server ?? skip();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { through, straight } = await openBoth(
    running,
    onceAfterInsert("client", "S", { kind: "hold", released }),
  );
  const claim = claimA(through);
  await sleep(0);
  const closed = through.close();
  release();
  expect(await claim).toMatchObject({ kind: "new" });
  await closed;
  await expect(through.lookup("id")).rejects.toMatchObject({ code: "CELLKIT_LEDGER_CLOSED" });
  expect(await straight.lookup("id")).toMatchObject({ backend: A });
});

it("a commit that stopped waiting for its standby is no acknowledgement", async ({ skip }) => {
  const running = server ?? skip();
  const { through, straight, name } = await openBoth(running, () => PASS, { timeoutMs: 1_500 });
  const setStandby = async (standby: string) => {
    await running.query(`ALTER SYSTEM SET synchronous_standby_names = '${standby}'`);
    await running.query("SELECT pg_reload_conf()");
    await expect
      .poll(async () => (await running.query("SHOW synchronous_standby_names"))[0], { timeout: 20_000 })
      .toEqual({ synchronous_standby_names: standby });
  };
  await setStandby("nobody");
  const claim = failureOfSent(through);
  // The server says that this INSERT succeeded, with a warning that the record is on this server only.
  await expect
    .poll(
      async () =>
        (
          await running.query(
            "SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT%'",
          )
        ).length,
      { interval: 10, timeout: 20_000 },
    )
    .toBe(1);
  expect(await claim).toMatchObject({ code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "maybe" });
  await setStandby("");
  expect(
    await running.query(`SELECT backend FROM cellkit_ledger WHERE ledger = '${name}' AND backend <> ''`),
  ).toEqual([{ backend: A }]);
  expect(await claimB(straight)).toMatchObject({ kind: "existing", owner: { backend: A } });
});

function inserts(seen: readonly Message[]): number {
  return seen.filter(({ from, text }) => from === "client" && text.includes("INSERT INTO")).length;
}

/** Resolves when a session waits for another's transaction. */
async function blocked(running: PostgresServer): Promise<void> {
  const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'transactionid'";
  await expect.poll(async () => (await running.query(waiting)).length, { timeout: 20_000 }).toBe(1);
}
