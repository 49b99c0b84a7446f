/** Claims in a directory on a small disk until it is full, then makes room. Prints what became of the claims. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";

const [directory = ""] = process.argv.slice(2);
const ledger = await openPosixLedger({ directory });
const ballast = join(directory, "ballast");
await writeFile(ballast, Buffer.alloc(256 * 1024));
const acknowledged: string[] = [];
const failures = new Set<string>();
let why = "";
let refusedId = "";
for (let round = 0; failures.size === 0; round += 1) {
  const ids = Array.from({ length: 16 }, (_, index) => `${round}-${index}`);
  await Promise.all(
    ids.map(async (id) => {
      try {
        const { kind } = await ledger.claim(id, id, async () => "http://a:8787");
        if (kind === "new") acknowledged.push(id);
      } catch (error) {
        const { code, recorded } = error as { code?: string; recorded?: string };
        failures.add(`${code} ${recorded}`);
        why = String(error);
        refusedId = id;
      }
    }),
  );
}
const looks = await Promise.all(acknowledged.map((id) => ledger.lookup(id)));
const counted = await ledger.count();
await rm(ballast);
const afterwards = await ledger.claim(refusedId, refusedId, async () => "http://a:8787");
const result = {
  acknowledged: acknowledged.length,
  failures: [...failures],
  why,
  kept: looks.filter((owner) => owner !== undefined).length,
  counted,
  afterwards: afterwards.kind,
};
await ledger.close();
process.stdout.write(`${JSON.stringify(result)}\n`);
