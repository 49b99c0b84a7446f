import { describe, expect, it } from "vitest";
import {
  type Bundle,
  bundleProject,
  DeployConflictError,
  publishDeployment,
  readDeployment,
} from "../src/index.ts";
import { interruptedBucket, textAt } from "./support/interrupted-bucket.ts";
import { smallProject, smallWorker } from "./support/projects.ts";

/** A bundle that differs from others by its text, and by its name where one is given. */
async function bundle(text: string, name = "counter"): Promise<Bundle> {
  const source = `${smallWorker} import note from "./note.txt"; console.log(note);`;
  return bundleProject(await smallProject({ name }, { "src/worker.js": source, "src/note.txt": text }));
}

const fleetKey = "deploy/current.json";
const scriptKey = "deploy/counter/current.json";

describe("publishing", () => {
  it("writes the modules, then the manifest, then the script's pointer, then the fleet's", async () => {
    const bucket = await interruptedBucket();
    const one = await bundle("one");
    const prefix = `deploy/counter/${one.version}`;
    expect(await publishDeployment(bucket, one)).toEqual({
      scriptName: "counter",
      version: one.version,
      created: true,
    });
    expect(bucket.writes).toEqual([
      `${prefix}/index.js`,
      `${prefix}/${one.modules[1]?.name}`,
      `${prefix}/manifest.json`,
      scriptKey,
      fleetKey,
    ]);
    const pointer = JSON.stringify({
      script_name: "counter",
      version: one.version,
      prefix,
      rollout: { percent: 100 },
    });
    expect(await textAt(bucket, fleetKey)).toBe(pointer);
    expect(await textAt(bucket, scriptKey)).toBe(pointer);
  });

  it("gives back what was bundled", async () => {
    const bucket = await interruptedBucket();
    const one = await bundle("one");
    await publishDeployment(bucket, one);
    const read = await readDeployment(bucket);
    expect(read).toMatchObject({ scriptName: "counter", version: one.version, manifest: one.manifest });
    const plain = (modules: Bundle["modules"] = []) =>
      modules.map(({ name, kind, bytes }) => [name, kind, Buffer.from(bytes).toString()]).sort();
    expect(plain(read?.modules)).toEqual(plain(one.modules));
  });

  it("twice changes nothing and says so", async () => {
    const bucket = await interruptedBucket();
    const one = await bundle("one");
    await publishDeployment(bucket, one);
    const before = await bucket.get(fleetKey);
    expect(await publishDeployment(bucket, one)).toMatchObject({ created: false });
    expect((await bucket.get(fleetKey))?.etag).toBe(before?.etag);
  });

  it("moves both pointers on, and back to a former version", async () => {
    const bucket = await interruptedBucket();
    const [one, two] = [await bundle("one"), await bundle("two")];
    for (const next of [one, two, one]) {
      expect(await publishDeployment(bucket, next)).toMatchObject({ created: true });
      expect((await readDeployment(bucket))?.version).toBe(next.version);
      expect(await textAt(bucket, scriptKey)).toBe(await textAt(bucket, fleetKey));
    }
  });

  it("finishes a deployment that broke off between the pointers", async () => {
    const bucket = await interruptedBucket();
    const [one, two] = [await bundle("one"), await bundle("two")];
    await publishDeployment(bucket, one);
    bucket.before = async (key) => {
      if (key === fleetKey) throw new Error("the power went off");
    };
    await expect(publishDeployment(bucket, two)).rejects.toThrow("the power went off");
    expect((await readDeployment(bucket))?.version).toBe(one.version);
    bucket.before = async () => {};
    expect(await publishDeployment(bucket, two)).toMatchObject({ created: true });
    expect((await readDeployment(bucket))?.version).toBe(two.version);
  });

  it("stops when its signal says so", async () => {
    const reason = new Error("enough");
    const publishing = publishDeployment(await interruptedBucket(), await bundle("one"), {
      signal: AbortSignal.abort(reason),
    });
    await expect(publishing).rejects.toBe(reason);
  });
});

describe("a pointer's write without an answer", () => {
  it.each([
    [scriptKey, "carried out"],
    [fleetKey, "carried out"],
    [scriptKey, "late"],
    [fleetKey, "late"],
  ] as const)("counts as done when settling finds it: %s, %s", async (key, lost) => {
    const bucket = await interruptedBucket();
    const [one, two] = [await bundle("one"), await bundle("two")];
    await publishDeployment(bucket, one);
    bucket.lost.set(key, lost);
    expect(await publishDeployment(bucket, two)).toMatchObject({ created: true });
    expect((await readDeployment(bucket))?.version).toBe(two.version);
  });

  it("is a conflict when the read-back finds another's", async () => {
    const bucket = await interruptedBucket();
    const [one, two] = [await bundle("one"), await bundle("two")];
    await publishDeployment(bucket, one);
    bucket.lost.set(scriptKey, "never");
    await expect(publishDeployment(bucket, two)).rejects.toThrow(DeployConflictError);
    expect((await readDeployment(bucket))?.version).toBe(one.version);
  });
});

describe("of two deployments at the same time", () => {
  it("the one that finds the script's pointer moved is refused, and the other stands", async () => {
    const bucket = await interruptedBucket();
    const [one, two, three] = [await bundle("one"), await bundle("two"), await bundle("three")];
    await publishDeployment(bucket, one);
    bucket.before = async () => {
      bucket.before = async () => {};
      await publishDeployment(bucket.plain, two);
    };
    const failed = publishDeployment(bucket, three);
    await expect(failed).rejects.toMatchObject({
      code: "CELLKIT_DEPLOYMENT_CONFLICT",
      key: scriptKey,
      message: expect.stringContaining(`${scriptKey} now says version ${two.version} of counter`),
    });
    expect((await readDeployment(bucket))?.version).toBe(two.version);
  });

  it("both succeed when they deploy the same version", async () => {
    const bucket = await interruptedBucket();
    const one = await bundle("one");
    bucket.before = async () => {
      bucket.before = async () => {};
      await publishDeployment(bucket.plain, one);
    };
    expect(await publishDeployment(bucket, one)).toMatchObject({ version: one.version });
  });

  it("the later one moves the fleet's pointer again when the slower one moved it in between", async () => {
    const bucket = await interruptedBucket();
    const [one, slow, last] = [await bundle("one"), await bundle("slow"), await bundle("last")];
    await publishDeployment(bucket, one);
    // Slow has moved the script's pointer and stops there; last sees that, and slow goes on just before last's last write.
    const held = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    bucket.before = async (key) => {
      if (key !== fleetKey) return;
      arrived.resolve();
      await held.promise;
    };
    const slowly = publishDeployment(bucket, slow);
    await arrived.promise;
    bucket.before = async (key) => {
      if (key !== fleetKey) return;
      bucket.before = async () => {};
      held.resolve();
      await slowly;
    };
    await publishDeployment(bucket, last);
    expect((await readDeployment(bucket))?.version).toBe(last.version);
    expect(await textAt(bucket, scriptKey)).toBe(await textAt(bucket, fleetKey));
  });

  it("the slower one is refused when the later one has moved both", async () => {
    const bucket = await interruptedBucket();
    const [one, slow, last] = [await bundle("one"), await bundle("slow"), await bundle("last")];
    await publishDeployment(bucket, one);
    bucket.before = async (key) => {
      if (key !== fleetKey) return;
      bucket.before = async () => {};
      await publishDeployment(bucket.plain, last);
    };
    await expect(publishDeployment(bucket, slow)).rejects.toMatchObject({ key: fleetKey });
    expect((await readDeployment(bucket))?.version).toBe(last.version);
  });
});

describe("another script's name", () => {
  it("is refused with the reason, before anything is written", async () => {
    const bucket = await interruptedBucket();
    await publishDeployment(bucket, await bundle("one"));
    const written = bucket.writes.length;
    await expect(publishDeployment(bucket, await bundle("one", "other"))).rejects.toMatchObject({
      code: "CELLKIT_DEPLOYMENT_OTHER_SCRIPT",
      current: "counter",
      message: expect.stringContaining("the data of the present cells would not follow"),
    });
    expect(bucket.writes).toHaveLength(written);
  });

  it("is deployed with replaceScript, and the first one again after it", async () => {
    const bucket = await interruptedBucket();
    const [one, other] = [await bundle("one"), await bundle("one", "other")];
    await publishDeployment(bucket, one);
    await publishDeployment(bucket, other, { replaceScript: true });
    expect(await readDeployment(bucket)).toMatchObject({ scriptName: "other" });
    expect(await publishDeployment(bucket, one, { replaceScript: true })).toMatchObject({ created: true });
    expect(await readDeployment(bucket)).toMatchObject({ scriptName: "counter" });
  });

  it("that was deployed in between is not replaced", async () => {
    const bucket = await interruptedBucket();
    const [one, other] = [await bundle("one"), await bundle("one", "other")];
    bucket.before = async (key) => {
      if (key !== fleetKey) return;
      bucket.before = async () => {};
      await publishDeployment(bucket.plain, other);
    };
    await expect(publishDeployment(bucket, one)).rejects.toMatchObject({ key: fleetKey });
    expect(await readDeployment(bucket)).toMatchObject({ scriptName: "other" });
  });
});
