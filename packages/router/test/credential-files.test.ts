import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CredentialError, type CredentialFileOptions, createCredentialFiles } from "../src/index.ts";
import { openTestRouter, tokens, writeTokens } from "./support/router.ts";
import { ScriptedBackend } from "./support/scripted-backend.ts";

let directory: string;
let files: ReturnType<typeof writeTokens>;
const another = "another-another-another-another";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "cellkit-router-tokens-"));
  files = writeTokens(directory);
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});

const open = (options: Partial<CredentialFileOptions> = {}) =>
  createCredentialFiles({ ...files, ...options });
const texts = (list: readonly Uint8Array[]) => list.map((token) => Buffer.from(token).toString());

it("every file that cannot be used is told at once, and one alone with its role", () => {
  unlinkSync(files.backend);
  const error = () => {
    try {
      open().load();
    } catch (caught) {
      return caught as CredentialError;
    }
    return undefined;
  };
  expect(error()).toMatchObject({ role: "backend" });
  writeFileSync(files.client, "short");
  expect(error()).toMatchObject({ role: undefined, code: "CELLKIT_ROUTER_CREDENTIALS" });
  expect(error()?.message).toMatch(
    /client token's file \S+\/client\S* .*; the backend token's file .*ENOENT/,
  );
  expect(error()?.message).not.toContain("short");
});

describe("tokens are read", () => {
  it("from three files", () => {
    const { client, backend, capability } = open().load();
    expect([texts(client), texts([backend]), texts(capability)]).toEqual([
      [tokens.client],
      [tokens.backend],
      [tokens.capability],
    ]);
  });

  it("anew when a file was replaced, written over with as many bytes, or is another one behind a link", () => {
    const source = open();
    const client = () => texts(source.load().client)[0];
    source.load();
    writeFileSync(`${files.client}.new`, another);
    renameSync(`${files.client}.new`, files.client);
    expect(client()).toBe(another);
    for (let round = 0; round < 50; round += 1) {
      writeFileSync(files.client, `another-another-another-another-${round + 10}`);
      expect(client()).toBe(`another-another-another-another-${round + 10}`);
    }
    // As Kubernetes does it: the file's directory is a link, and the link is replaced.
    for (const generation of ["one", "two"]) {
      mkdirSync(join(directory, generation));
      writeFileSync(join(directory, generation, "token"), `${generation}-${another}`);
    }
    symlinkSync("one", join(directory, "data"));
    const linked = open({ client: join(directory, "data", "token") });
    expect(texts(linked.load().client)).toEqual([`one-${another}`]);
    symlinkSync("two", join(directory, "data.new"));
    renameSync(join(directory, "data.new"), join(directory, "data"));
    expect(texts(linked.load().client)).toEqual([`two-${another}`]);
  });

  it("no second time while the files are the same, once they have settled", async () => {
    const source = open();
    const first = source.load();
    expect(source.load()).toBe(first);
    utimesSync(files.client, 1, 1);
    // Other times, the same bytes: read again, and found equal.
    expect(source.load().client[0]).toBe(first.client[0]);
  });

  it.each([
    ["written over with as many bytes", () => writeFileSync(files.client, another.slice(0, 27))],
    [
      "replaced by one of as many bytes and the same times",
      () => {
        writeFileSync(`${files.client}.new`, another.slice(0, 27));
        utimesSync(`${files.client}.new`, 1, 1);
        renameSync(`${files.client}.new`, files.client);
      },
    ],
  ])("anew when a file that has settled was %s", (_how, change) => {
    expect(tokens.client).toHaveLength(27);
    utimesSync(files.client, 1, 1);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    const source = open();
    expect(texts(source.load().client)).toEqual([tokens.client]);
    change();
    expect(texts(source.load().client)).toEqual([another.slice(0, 27)]);
  });
});

describe("tokens cannot be used", () => {
  const problemOf = (options: Partial<CredentialFileOptions> = {}) => {
    try {
      open(options).load();
    } catch (error) {
      return error as CredentialError;
    }
    return undefined;
  };

  it.each([
    ["a file is missing", () => unlinkSync(files.backend), "backend", /ENOENT/],
    ["a file is short", () => writeFileSync(files.client, "short"), "client", /fewer than 24/],
    ["a file is long", () => writeFileSync(files.client, "x".repeat(4_097)), "client", /longer than 4096/],
    ["discovery has none", () => writeFileSync(files.capability, ""), "capability", /fewer/],
    [
      "two are equal",
      () => writeFileSync(files.capability, ` ${tokens.client}\n`),
      undefined,
      /equals the client/,
    ],
  ] as const)("when %s", (_state, change, role, message) => {
    change();
    const error = problemOf();
    expect(error).toMatchObject({
      code: "CELLKIT_ROUTER_CREDENTIALS",
      role,
      message: expect.stringMatching(message),
    });
    expect(error?.message).not.toMatch(/client-client|discovery-discovery/);
  });

  it("when client and backend have one token, also without discovery or where discovery may fail alone", () => {
    writeFileSync(files.client, tokens.backend);
    for (const options of [{}, { isolateCapability: true }])
      expect(problemOf(options)?.message).toMatch(/client token equals the backend token/);
    const { client, backend } = files;
    expect(() => createCredentialFiles({ client, backend }).load()).toThrow(/equals the backend token/);
  });

  it("when a path is a directory, or a pipe that nobody writes to", () => {
    expect(problemOf({ client: directory })?.message).toMatch(/no regular file/);
    execFileSync("mkfifo", [join(directory, "pipe")]);
    expect(problemOf({ client: join(directory, "pipe") })?.message).toMatch(/no regular file/);
  });

  it("until they can again", () => {
    const source = open();
    source.load();
    writeFileSync(files.client, "short");
    expect(() => source.load()).toThrow(/fewer/);
    writeFileSync(files.client, another);
    expect(texts(source.load().client)).toEqual([another]);
  });
});

describe("where it was asked for", () => {
  it("a second token of a role is taken, too, and may be missing", () => {
    const otherClient = join(directory, "other");
    const source = open({ otherClient });
    expect(texts(source.load().client)).toEqual([tokens.client]);
    writeFileSync(otherClient, another);
    expect(texts(source.load().client)).toEqual([tokens.client, another]);
  });

  it.each([
    ["is empty", ""],
    ["is the backend's", tokens.backend],
    ["is discovery's", tokens.capability],
  ])("a second token that %s is left out and told of, and the first one goes on", (_state, token) => {
    for (const isolateCapability of [false, true]) {
      const problems: string[] = [];
      const otherClient = join(directory, "other");
      const onProblem = ({ message }: Error, leftOut: string) => problems.push(`${leftOut} ${message}`);
      const source = open({ otherClient, isolateCapability, onProblem });
      writeFileSync(otherClient, token);
      const { client, capability } = source.load();
      expect([texts(client), texts(capability)]).toEqual([[tokens.client], [tokens.capability]]);
      expect(problems).toEqual([expect.stringMatching(/^second .*client/)]);
      expect(problems.join()).not.toMatch(/backend-backend|discovery-discovery/);
    }
  });

  it("a second discovery token that is another role's is left out", () => {
    const [otherClient, otherCapability] = [join(directory, "client-2"), join(directory, "capability-2")];
    const source = open({ otherClient, otherCapability });
    writeFileSync(otherCapability, tokens.client);
    expect(texts(source.load().capability)).toEqual([tokens.capability]);
    // Of two equal second tokens the one with fewer rights counts.
    writeFileSync(otherCapability, another);
    writeFileSync(otherClient, another);
    const { client, capability } = source.load();
    expect([texts(client), texts(capability)]).toEqual([[tokens.client], [tokens.capability, another]]);
  });

  it("a discovery token never becomes a client's while discovery is left out", () => {
    const otherClient = join(directory, "other");
    const source = open({ otherClient, isolateCapability: true });
    source.load();
    // The file cannot be read any more, and the token stands in a client's.
    writeFileSync(files.capability, "short");
    writeFileSync(otherClient, tokens.capability);
    expect(texts(source.load().client)).toEqual([tokens.client]);
    writeFileSync(files.client, tokens.capability);
    expect(() => source.load()).toThrow(/was the capability token/);
    // Equal to the backend's, and so left out, from the start.
    writeFileSync(files.client, tokens.client);
    writeFileSync(files.capability, tokens.backend);
    writeFileSync(otherClient, another);
    expect(texts(open({ otherClient, isolateCapability: true }).load().client)).toEqual([
      tokens.client,
      another,
    ]);
  });

  it.each([
    ["is missing", () => unlinkSync(files.capability)],
    ["has two lines", () => writeFileSync(files.capability, `${tokens.capability}\nx`)],
  ])("no second client token is taken where discovery's file %s from the start", (_state, change) => {
    const problems: string[] = [];
    const otherClient = join(directory, "other");
    const onProblem = ({ message }: Error, leftOut: string) => problems.push(`${leftOut} ${message}`);
    const source = open({ otherClient, isolateCapability: true, onProblem });
    change();
    expect(texts(source.load().client)).toEqual([tokens.client]);
    expect(problems.splice(0)).toEqual([expect.stringMatching(/^discovery/)]);
    // It might be discovery's own.
    writeFileSync(otherClient, tokens.capability);
    expect(texts(source.load().client)).toEqual([tokens.client]);
    expect(problems).toContainEqual(expect.stringMatching(/^second .*capability token is not known/));
    writeFileSync(files.capability, tokens.capability);
    expect(texts(source.load().client)).toEqual([tokens.client]);
    writeFileSync(otherClient, another);
    expect(texts(source.load().client)).toEqual([tokens.client, another]);
  });

  it("a second discovery token never becomes a client's either while discovery is left out", () => {
    const [otherClient, otherCapability] = [join(directory, "client-2"), join(directory, "capability-2")];
    const source = open({ otherClient, otherCapability, isolateCapability: true });
    writeFileSync(otherCapability, another);
    source.load();
    writeFileSync(files.capability, "short");
    writeFileSync(otherClient, another);
    expect(texts(source.load().client)).toEqual([tokens.client]);
    // Seen before, it is known also when its file is gone.
    unlinkSync(otherCapability);
    expect(texts(source.load().client)).toEqual([tokens.client]);
    // Not seen before, but there to be read.
    writeFileSync(otherCapability, another);
    writeFileSync(files.capability, tokens.backend);
    const anew = open({ otherClient, otherCapability, isolateCapability: true });
    expect(texts(anew.load().client)).toEqual([tokens.client]);
  });

  it("a broken discovery token stops discovery alone", () => {
    const problems: string[] = [];
    const source = open({ isolateCapability: true, onProblem: ({ message }) => problems.push(message) });
    expect(source.load().capability).toHaveLength(1);
    for (const broken of ["short", tokens.client, tokens.backend]) {
      writeFileSync(files.capability, broken);
      expect(source.load().capability).toEqual([]);
    }
    expect(problems.map((problem) => /fewer|client|backend/.exec(problem)?.[0])).toHaveLength(3);
    writeFileSync(files.client, "short");
    expect(() => source.load()).toThrow(/client/);
  });
});

it("a router refuses everybody until its tokens can be used, and goes on by itself", async () => {
  await using backend = await ScriptedBackend.open();
  await using router = await openTestRouter([backend]);
  writeFileSync(router.tokenFiles.capability, "short");
  const refused = await router.submit("run-1");
  expect([refused?.status, refused?.body]).toEqual([503, '{"error":"router credentials unavailable"}']);
  expect(router.events).toContainEqual({
    kind: "credentials",
    error: expect.objectContaining({ role: "capability" }),
  });
  writeFileSync(router.tokenFiles.capability, tokens.capability);
  expect((await router.submit("run-1"))?.status).toBe(202);
  writeFileSync(router.tokenFiles.client, another);
  expect((await router.read("/v1/executions/run-1"))?.status).toBe(401);
  expect((await router.read("/v1/executions/run-1", another))?.status).toBe(200);
  chmodSync(router.tokenFiles.client, 0o600);
});
