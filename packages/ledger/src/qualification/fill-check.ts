/** A full disk: a claim must say so, and nothing may be half done. */
import { open, rm, statfs } from "node:fs/promises";
import { failed, notTested, type Outcome, passed } from "./check.ts";
import { probeDirectory } from "./probe-place.ts";
import type { Stage } from "./stage.ts";

const PIECE_BYTES = [1_048_576, 4_096] as const;
const CLAIM_COUNT = 64;

/** Fills the file system that the directory lies on, if it has no more room than `limitBytes`. */
export function fullDisk(
  directory: string,
  limitBytes: number | undefined,
): (stage: Stage) => Promise<Outcome> {
  return async (stage) => {
    if (limitBytes === undefined)
      return notTested(
        "it fills the disk for a moment, for everybody on it, and was not asked for (--fill-mib)",
      );
    const probe = probeDirectory(directory, stage.probe);
    const { bavail, bsize } = await statfs(probe);
    if (bavail * bsize > limitBytes)
      return notTested(
        `there is room for ${Math.round((bavail * bsize) / 1_048_576)} MiB, and ${Math.round(limitBytes / 1_048_576)} MiB may be written: use a small volume or a quota`,
      );
    const [agent] = stage.agents;
    if (agent === undefined) return notTested("no agent");
    const filler = `${probe}/files/filler`;
    const ids = Array.from({ length: CLAIM_COUNT }, () => stage.word());
    const claim = () => agent.ask("claim", { ids, body: "the same bytes", owner: agent.owner });
    let full: Awaited<ReturnType<typeof claim>>;
    try {
      if (!(await fill(filler, limitBytes))) return notTested(`${limitBytes} bytes did not fill the disk`);
      full = await claim();
    } finally {
      await rm(filler, { force: true });
    }
    const refused = full.answers.filter(({ kind }) => kind === "error");
    if (refused.length === 0) return notTested("the full disk still took records");
    const again = await claim();
    const odd = again.answers.find((answer) => !("backend" in answer) || answer.backend !== agent.owner);
    if (odd !== undefined) return failed(`after the disk was full, a claim was answered ${odd.kind}`);
    const lost = full.answers.findIndex(
      ({ kind }, at) => kind === "new" && again.answers[at]?.kind !== "existing",
    );
    if (lost >= 0) return failed(`${ids[lost]} was acknowledged on the full disk and is not there`);
    return passed(
      `${refused.length} of ${CLAIM_COUNT} claims were refused on a full disk, and went through when there was room`,
    );
  };
}

/** Writes until there is no room. Answers false if that did not come. */
async function fill(path: string, limitBytes: number): Promise<boolean> {
  const file = await open(path, "wx", 0o600);
  let writtenBytes = 0;
  let isFull = false;
  try {
    for (const piece of PIECE_BYTES) {
      isFull = false;
      while (!isFull && writtenBytes <= limitBytes)
        try {
          writtenBytes += (await file.write(Buffer.alloc(piece))).bytesWritten;
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException;
          if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
          isFull = true;
        }
    }
    return isFull;
  } finally {
    await file.close();
  }
}
