// `cellkit peer rotate`: another fleet key in place of the present one, while the fleet serves.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { bucketOptions } from "../bucket-options.ts";

const milliseconds = z.number().int().min(0).max(86_400_000);

/** The command's options. */
export const peerRotateOptions = z.strictObject({
  ...bucketOptions,
  status: z.boolean().default(false).meta({
    description: "Only tell where a rotation is, and which nodes hold it back.",
  }),
  stepTimeoutMs: milliseconds.default(300_000).meta({
    description: "How long nodes may take to follow one step. They read the keys every 5 s.",
  }),
  settleMs: milliseconds.default(10_000).meta({
    description: "Nodes are looked at a second time after this long, to see one that started meanwhile.",
  }),
  graceMs: milliseconds.default(60_000).meta({
    description:
      "How long the old key is accepted after the last node stopped signing with it: for callers that are no nodes, and for requests on their way.",
  }),
});

/** The command. */
export const peerRotate = defineCommand<typeof peerRotateOptions, CommandContext>({
  description:
    "Replaces the fleet's key while the fleet serves: 1. nodes accept a second key, 2. they sign with it, 3. it becomes the fleet's key, 4. the old one is refused. Before each step every live node must have followed the one before. When it is ended on the way, the fleet works on; calling it again goes on from there.",
  schema: peerRotateOptions,
  exitCodes: {
    0: "the key was replaced; with --status: no rotation is under way",
    1: "failure: the bucket refuses, somebody else rotates; standard error says why",
    2: "bad flags or environment",
    3: "a node does not follow, or with --status: a rotation is under way",
    130: "ended by a signal; calling it again goes on",
  },
  examples: [
    { command: "cellkit peer rotate --bucket s3://cells/fleet", description: "About a minute and a half" },
    { command: "cellkit peer rotate --status", description: "Which nodes hold a rotation back" },
  ],
  async run(config, { defer, note, print, signal }) {
    const { openBucket } = await import("@cellkit/bucket");
    const { endpoint, region } = config;
    const bucket = openBucket(config.bucket, { region, endpoint });
    defer("the bucket", () => bucket.close());
    if (config.status) {
      const { laggingNodes, NodeDirectory, readRotation } = await import("@cellkit/peer");
      const state = await readRotation(bucket, { signal });
      print(`key ${state.current}, rotation ${state.phase}`);
      for (const { node, reason } of laggingNodes(
        state,
        await new NodeDirectory(bucket).list({ signal }),
        Date.now(),
      ))
        print(`${node} ${reason}`);
      return state.phase === "none" ? 0 : 3;
    }
    const { rotateKey } = await import("../rotate-key.ts");
    const { stepTimeoutMs, settleMs, graceMs } = config;
    const { current } = await rotateKey(bucket, {
      stepTimeoutMs,
      settleMs,
      graceMs,
      onProgress: note,
      signal,
    });
    print(current);
    return 0;
  },
});
