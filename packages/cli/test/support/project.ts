// Small Wrangler projects in a temporary directory.
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A Worker that answers with a text, and counts in a cell. */
export function worker(text: string): string {
  return `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  async fetch() {
    const n = (await this.ctx.storage.get("n") ?? 0) + 1;
    await this.ctx.storage.put("n", n);
    return new Response(String(n));
  }
}
export default {
  fetch(request, env) {
    if (new URL(request.url).pathname === "/count") return env.COUNTER.getByName("one").fetch(request);
    return new Response(${JSON.stringify(text)});
  },
};
`;
}

/** The configuration of that Worker. */
const configuration = {
  name: "counter",
  main: "src/worker.js",
  compatibility_date: "2026-11-01",
  durable_objects: { bindings: [{ name: "COUNTER", class_name: "Counter" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["Counter"] }],
};

/** A directory of its own under the system's temporary one. */
export class TemporaryDirectory {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<TemporaryDirectory> {
    return new TemporaryDirectory(await mkdtemp(join(tmpdir(), "cellkit-cli-")));
  }

  /** Writes a file and the folders above it; answers its path. */
  async write(file: string, text: string): Promise<string> {
    const path = join(this.path, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    return path;
  }

  /** Puts another file in the place of one at once, as many editors do: whoever watches it never sees half of one. */
  async replace(file: string, text: string): Promise<void> {
    await rename(await this.write(".replacement", text), join(this.path, file));
  }

  /** Writes a project; answers its path. */
  async project(folder: string, text: string, changes: object = {}): Promise<string> {
    await this.write(join(folder, "wrangler.jsonc"), JSON.stringify({ ...configuration, ...changes }));
    await this.write(join(folder, "src/worker.js"), worker(text));
    return join(this.path, folder);
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true, maxRetries: 5 });
  }
}
