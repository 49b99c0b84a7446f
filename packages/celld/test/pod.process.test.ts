// The environment that the operator gives to a pod, to the letter: a node starts on it, and two of them are one fleet whose
// members know each other by host name.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DaemonProcess } from "@cellkit/daemon";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../../../tools/test-support/free-port.ts";
import { celldCommand } from "../src/index.ts";
import { Fleet } from "./support/fleet.ts";

let fleet: Fleet;
const pods: DaemonProcess[] = [];
/** What the pods printed. */
const lines: Record<string, string[]> = {};

beforeAll(async () => {
  fleet = await Fleet.open();
  await writeFile(join(fleet.directory, "vars.env"), "# of this place\nREGION=eu\n");
  await fleet.deploy();
});
afterAll(async () => {
  await Promise.all(pods.map((pod) => pod.kill()));
  await fleet[Symbol.asyncDispose]();
});

/** Starts a pod and waits until its readiness probe passes; its public URL. */
async function startPod(name: string): Promise<string> {
  const [publicPort, internalPort] = [await freePort(), await freePort()];
  const bucket = `${fleet.store.bucketName}/fleet`;
  const { command, args } = celldCommand();
  const printed: string[] = [];
  lines[name] = printed;
  const pod = new DaemonProcess(name, {
    command,
    onLine: (line) => void printed.push(line),
    args: [...args, "--bucket", bucket, "--listen", `0.0.0.0:${publicPort}`],
    env: {
      PATH: process.env["PATH"],
      TMPDIR: fleet.directory,
      HOME: fleet.directory,
      POD_NAME: name,
      CELLD_BUCKET: bucket,
      CELLD_INTERNAL_ADDR: `0.0.0.0:${internalPort}`,
      CELLD_ADVERTISE: `localhost:${internalPort}`,
      CELLD_WATCH: join(fleet.directory, name),
      CELLD_SHUTDOWN_DRAIN_MS: "25000",
      CELLD_SHUTDOWN_TOTAL_MS: "40000",
      CELLD_MAX_RESIDENT_CELLS: "10000",
      CELLD_MAX_RSS_MB: "6553",
      S3_ENDPOINT: fleet.store.endpoint,
      AWS_REGION: "us-east-1",
      CELLD_DURABILITY: "bucket",
      CELLD_TRUST_FORWARDED_HEADERS: "1",
      CELLD_OTEL: "1",
      OTEL_SERVICE_NAME: "chat",
      CELLD_OTEL_SINK: "otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
      CELLD_OTEL_RETENTION: "30d",
      CELLD_VARS_FILE: join(fleet.directory, "vars.env"),
      AWS_ACCESS_KEY_ID: fleet.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: fleet.credentials.secretAccessKey,
    },
  });
  pods.push(pod);
  const url = `http://127.0.0.1:${publicPort}`;
  const probe = () =>
    fetch(`${url}/__celld/health`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await pod.until("ready", probe, 120_000);
  return url;
}

it("two pods become ready and serve each other's cells", async () => {
  const [one, other] = [await startPod("chat-celld-0"), await startPod("chat-celld-1")];
  const boots = [];
  for (const url of [one, other]) boots.push(await (await fetch(`${url}/rooms/a/boot`)).json());
  expect(boots[0]).toEqual({ boot: expect.any(String) });
  expect(boots[1]).toEqual(boots[0]);
  const warned = lines["chat-celld-0"]?.filter((line) => line.includes("has no effect")) ?? [];
  expect(warned.filter((line) => line.includes("is not a variable"))).toEqual([]);
  expect(warned).toHaveLength(10);
});
