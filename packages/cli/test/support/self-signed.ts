// Certificates that sign themselves, made by openssl when a test needs them: each is its own CA.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** Whether they can be made here; in CI they must be. */
export function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch (error) {
    if (process.env["CI"] !== undefined) throw error;
    process.stdout.write("not run: TLS to a router; install openssl (Debian: apt-get install openssl)\n");
    return false;
  }
}

/** Writes a certificate for 127.0.0.1 and its key. */
export function makeSelfSigned(directory: string, name: string): { certFile: string; keyFile: string } {
  const [certFile, keyFile] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", keyFile];
  const about = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...key, ...about, "-out", certFile], { stdio: "ignore" });
  return { certFile, keyFile };
}
