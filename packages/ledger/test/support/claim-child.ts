/**
 * One replica among others: opens a ledger in a directory, says so, waits for a line of input, then claims many ids at once and
 * prints how each claim was answered, with its owner.
 */
import { once } from "node:events";
import type { StoredLedger } from "../../src/ledger.ts";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";

const [directory = "", owner = "", ids = "[]"] = process.argv.slice(2);
const answers: unknown[] = [];
let ledger: StoredLedger | undefined;
try {
  const opened = await openPosixLedger({ directory, lockTimeoutMs: 30_000 });
  ledger = opened;
  process.stdout.write('"ready"\n');
  await once(process.stdin, "data");
  const claims = await Promise.allSettled(
    (JSON.parse(ids) as string[]).map((id) => opened.claim(id, `body of ${id}`, async () => owner)),
  );
  for (const claim of claims)
    answers.push(
      claim.status === "rejected"
        ? { kind: "failed", why: String(claim.reason), ...claim.reason }
        : claim.value,
    );
} catch (error) {
  answers.push({ kind: "failed", why: String(error), ...(error instanceof Error ? error : {}) });
} finally {
  await ledger?.close();
}
process.stdout.write(`${JSON.stringify(answers)}\n`);
process.stdin.destroy();
