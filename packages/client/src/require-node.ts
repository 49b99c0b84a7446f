// Imported before anything else: on a Node that is too old, undici fails while it loads, in words about something else. It
// stays a file of its own when the package is built, since imports of one file run before its first line.
import { UnsupportedNodeError } from "./errors.ts";

/** The floor of undici 8, as in `engines`. */
const oldest = { major: 22, minor: 19 } as const;

const { node: version } = process.versions;
const [major = 0, minor = 0] = version.split(".").map(Number);
if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
  throw new UnsupportedNodeError(version, `${oldest.major}.${oldest.minor}`);
}
