import { expect, it } from "vitest";
import { openDataDirectory } from "../src/data-directory.ts";

it.runIf(process.platform === "linux")(
  "a data directory below /proc, where none can be made, fails with its path instead of going on for ever",
  async () => {
    await expect(openDataDirectory("/proc/cellkit-none/node")).rejects.toMatchObject({
      code: "CELLKIT_ENGINE_DATA_DIRECTORY",
      message: expect.stringContaining("/proc/cellkit-none/node cannot be used: ENOENT"),
    });
  },
);
