// The file of the evidence. Until all is done it has another name, so that a run that is killed leaves what it had shown, and no file that
// could be taken for a whole one.
import { access, type FileHandle, open, rename, rm } from "node:fs/promises";
import { QualificationInputError } from "../errors.ts";
import type { ExecutionsEvidence } from "./evidence.ts";

/** Evidence that is being written. Close it. */
export class EvidenceFile {
  readonly #path: string;
  readonly #file: FileHandle;
  #state: "empty" | "begun" | "whole" = "empty";

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** @throws QualificationInputError (`CELLKIT_CLI_QUALIFICATION_INPUT`) where one is there, or none can be made */
  static async create(path: string): Promise<EvidenceFile> {
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere)
      throw new QualificationInputError(`--out ${path} is there already: give another name, or remove it`);
    const partial = partialOf(path);
    try {
      return new EvidenceFile(path, await open(partial, "wx", 0o600));
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      throw new QualificationInputError(
        code === "EEXIST"
          ? `${partial} is there, of a run that did not end, or has not yet: when none is running, remove it, or keep it under another name`
          : `--out ${path} cannot be made (${code ?? "unknown"})`,
        { cause },
      );
    }
  }

  /** Where what was found until now lies; undefined: nowhere, or it is whole. */
  get partialPath(): string | undefined {
    return this.#state === "begun" ? partialOf(this.#path) : undefined;
  }

  /** Writes what was found until now, in place of what was before. */
  async keep(evidence: ExecutionsEvidence): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(evidence, undefined, 2)}\n`);
    await this.#file.truncate(0);
    for (let at = 0; at < bytes.length; )
      at += (await this.#file.write(bytes, at, bytes.length - at, at)).bytesWritten;
    this.#state = "begun";
  }

  /** Writes all of it, and gives the file its name. */
  async finish(evidence: ExecutionsEvidence): Promise<void> {
    await this.keep(evidence);
    await this.#file.sync();
    await rename(partialOf(this.#path), this.#path);
    this.#state = "whole";
  }

  /** Removes a file that nothing was written to. */
  async close(): Promise<void> {
    await this.#file.close();
    if (this.#state === "empty") await rm(partialOf(this.#path), { force: true });
  }
}

function partialOf(path: string): string {
  return `${path}.partial`;
}
