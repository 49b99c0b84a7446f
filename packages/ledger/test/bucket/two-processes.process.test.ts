import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import { type ServedBucket, serveTestBucket } from "../support/bucket-places.ts";

const CLAIM_COUNT = 96;
const OWNERS = ["http://10.20.0.11:8787", "http://10.20.0.12:8787"];

/** Each process makes its claims at once, both at the same time. Answers all their answers. */
async function claimInTwoProcesses(
  served: ServedBucket,
  name: string,
  idsOf: (process: number) => readonly string[],
): Promise<string[]> {
  const program = fileURLToPath(new URL("../support/bucket-claims-child.ts", import.meta.url));
  const children = OWNERS.map((owner, index) => {
    const args = ["--conditions=@cellkit/source", program, name, owner, JSON.stringify(idsOf(index))];
    const env = { ...process.env, BUCKET_OPTIONS: JSON.stringify(served.options) };
    const child: ChildProcessWithoutNullStreams = spawn(process.execPath, args, { env });
    onTestFinished(() => void child.kill("SIGKILL"));
    child.stderr.pipe(process.stderr);
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
  });
  for (const { lines } of children) expect((await lines.next()).value).toBe("ready");
  for (const { child } of children) child.stdin.write("go\n");
  const answers = await Promise.all(
    children.map(async ({ child, lines }) => {
      const exited = once(child, "exit");
      const { value } = await lines.next();
      expect(await exited).toEqual([0, null]);
      return JSON.parse(value ?? "[]") as string[];
    }),
  );
  return answers.flat();
}

it(`${CLAIM_COUNT} new ids over two processes are all new, and none is refused`, async () => {
  await using served = await serveTestBucket();
  const answers = await claimInTwoProcesses(served, "new-ids", (process) =>
    Array.from({ length: CLAIM_COUNT / 2 }, (_, index) => `${process}-${index}`),
  );
  expect(answers).toEqual(Array.from({ length: CLAIM_COUNT }, () => "new"));
  const ledger = await openBucketLedger({ bucket: served.open(), name: "new-ids", requireExisting: true });
  expect(await ledger.count()).toBe(CLAIM_COUNT);
});

it(`of ${CLAIM_COUNT} claims of one id over two processes exactly one is new, and all have one owner`, async () => {
  await using served = await serveTestBucket();
  const answers = await claimInTwoProcesses(served, "one-id", () =>
    Array.from({ length: CLAIM_COUNT / 2 }, () => "the id"),
  );
  expect(answers.filter((answer) => answer === "new")).toHaveLength(1);
  expect(answers.filter((answer) => answer === "existing")).toHaveLength(CLAIM_COUNT - 1);
});
