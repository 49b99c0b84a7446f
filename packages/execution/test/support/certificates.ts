// Authorities and certificates that exist for one test, made by openssl.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { testDirectory } from "./client.ts";

const run = promisify(execFile);

/** Whether there is an openssl to make certificates with; in CI there has to be one. */
export async function hasOpenssl(): Promise<boolean> {
  try {
    await run("openssl", ["version"]);
    return true;
  } catch (error) {
    if (process.env["CI"]) throw error;
    process.stdout.write(
      "not run: TLS tests of @cellkit/execution; install openssl (Debian: apt-get install openssl)\n",
    );
    return false;
  }
}

export interface Authority {
  /** Its certificate, PEM. */
  readonly ca: string;
  /** A certificate for an address, by this authority. */
  issue(subjectAltName: string): Promise<{ cert: string; key: string }>;
}

/** @param directory where it lives; without one, as long as the test */
export async function createAuthority(directory?: string): Promise<Authority> {
  const place = directory ?? (await testDirectory());
  const make = async (name: string, subjectAltName: string | undefined) => {
    const [cert, key] = [`${place}/${name}.pem`, `${place}/${name}.key`];
    const signer =
      subjectAltName === undefined ? [] : ["-CA", `${place}/ca.pem`, "-CAkey", `${place}/ca.key`];
    const names = subjectAltName === undefined ? [] : ["-addext", `subjectAltName=${subjectAltName}`];
    const what = [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
    ];
    await run("openssl", [
      ...what,
      "-subj",
      `/CN=${name}`,
      "-out",
      cert,
      "-keyout",
      key,
      ...signer,
      ...names,
    ]);
    return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
  };
  const { cert: ca } = await make("ca", undefined);
  return { ca, issue: (subjectAltName) => make("server", subjectAltName) };
}
