/** The oldest Node that the packages run on: the floor of undici 8, and of what the sources use. */
const oldest = { major: 22, minor: 19 } as const;

/**
 * What is wrong with a version of Node, in one sentence for a person; undefined when it is new enough.
 * @param program who says so
 * @param version as in `process.versions.node`
 */
export function nodeVersionProblem(program: string, version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > oldest.major || (major === oldest.major && minor >= oldest.minor)) return undefined;
  return `${program}: needs Node ${oldest.major}.${oldest.minor} or later, and this is ${version}; install a newer one`;
}
