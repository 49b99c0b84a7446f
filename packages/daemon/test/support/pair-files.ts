// A pair in files of a directory of its own, replaced as careful programs do it.
import { execFileSync } from "node:child_process";
import { mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CertificateFiles } from "../../src/index.ts";
import type { TestPair } from "./test-pair.ts";

/** Certificate, key, and a place for a client CA. */
export class PairFiles implements AsyncDisposable {
  readonly directory: string;
  readonly paths: Required<CertificateFiles> & { clientCaPath: string };

  private constructor(directory: string) {
    this.directory = directory;
    const path = (name: string) => join(directory, name);
    this.paths = { certPath: path("tls.crt"), keyPath: path("tls.key"), clientCaPath: path("ca.crt") };
  }

  static async with(pair: TestPair): Promise<PairFiles> {
    const files = new PairFiles(await mkdtemp(join(tmpdir(), "cellkit-pair-")));
    await files.write(pair);
    return files;
  }

  /** Without a client CA. */
  get pair(): CertificateFiles {
    const { certPath, keyPath } = this.paths;
    return { certPath, keyPath };
  }

  /** Replaces the files of what is given, one after the other. */
  async write({ cert, key, clientCa }: Partial<TestPair> & { clientCa?: string }): Promise<void> {
    for (const [path, text] of [
      [this.paths.certPath, cert],
      [this.paths.keyPath, key],
      [this.paths.clientCaPath, clientCa],
    ] as const) {
      if (text === undefined) continue;
      await writeFile(`${path}.next`, text);
      await rename(`${path}.next`, path);
    }
  }

  /** A pipe that nobody writes to. */
  async replaceByPipe(path: string): Promise<void> {
    await rm(path);
    execFileSync("mkfifo", [path]);
  }

  /** A device that has no end. */
  async replaceByDevice(path: string): Promise<void> {
    await rm(path);
    await symlink("/dev/zero", path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true });
  }
}
