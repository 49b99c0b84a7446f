// A node that has no key pair in its environment, but a profile: what the AWS SDK finds there, workerd is given.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DaemonProcess } from "@cellkit/daemon";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "../../../tools/test-support/free-port.ts";
import { celldCommand } from "../src/index.ts";
import { Fleet } from "./support/fleet.ts";

it("a node with a profile that gives temporary credentials serves its cells", async () => {
  const fleet = await Fleet.open();
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  await fleet.deploy();
  const { accessKeyId, secretAccessKey } = fleet.credentials;
  const Expiration = new Date(Date.now() + 3_600_000).toISOString();
  const keys = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: "t", Expiration };
  await writeFile(join(fleet.directory, "keys.json"), JSON.stringify({ Version: 1, ...keys }), {
    mode: 0o600,
  });
  await writeFile(
    join(fleet.directory, "aws"),
    `[profile fleet]\ncredential_process = cat ${join(fleet.directory, "keys.json")}\n`,
  );
  const port = await freePort();
  const { command, args } = celldCommand();
  const node = new DaemonProcess("node", {
    command,
    args: [
      ...args,
      "--bucket",
      fleet.bucketUrl,
      "--endpoint",
      fleet.store.endpoint,
      "--listen",
      `127.0.0.1:${port}`,
    ],
    env: {
      PATH: process.env["PATH"],
      HOME: fleet.directory,
      CELLD_WATCH: join(fleet.directory, "node"),
      AWS_CONFIG_FILE: join(fleet.directory, "aws"),
      AWS_PROFILE: "fleet",
    },
  });
  onTestFinished(async () => void (await node.kill()));
  const url = `http://127.0.0.1:${port}`;
  const isHealthy = () =>
    fetch(`${url}/__celld/health`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await node.until("healthy", isHealthy, 120_000);
  expect((await fetch(`${url}/rooms/a/boot`)).status).toBe(200);
});
