/** File systems by the number that statfs(2) has for them, and which of them are this machine's own. */
import { statfs } from "node:fs/promises";

/** `local`: a disk of this machine. `memory`: forgets. `shared`: others may see it, or it is not known here. */
export interface FileSystem {
  name: string;
  kind: "local" | "memory" | "shared";
}

const known: ReadonlyMap<number, FileSystem> = new Map([
  [0xef53, { name: "ext2/3/4", kind: "local" }],
  [0x58465342, { name: "xfs", kind: "local" }],
  [0x9123683e, { name: "btrfs", kind: "local" }],
  [0xf2f52010, { name: "f2fs", kind: "local" }],
  [0x2fc12fc1, { name: "zfs", kind: "local" }],
  [0xca451a4e, { name: "bcachefs", kind: "local" }],
  // Its changes go to its upper layer, which must be a local file system.
  [0x794c7630, { name: "overlayfs", kind: "local" }],
  [0x01021994, { name: "tmpfs", kind: "memory" }],
  [0x858458f6, { name: "ramfs", kind: "memory" }],
  [0x6969, { name: "nfs", kind: "shared" }],
  [0xff534d42, { name: "cifs", kind: "shared" }],
  [0xfe534d42, { name: "smb2", kind: "shared" }],
  [0x65735546, { name: "fuse", kind: "shared" }],
  [0x00c36400, { name: "ceph", kind: "shared" }],
  [0x01021997, { name: "9p", kind: "shared" }],
  [0x01161970, { name: "gfs2", kind: "shared" }],
  [0x7461636f, { name: "ocfs2", kind: "shared" }],
  [0x0bd00bd0, { name: "lustre", kind: "shared" }],
  [0x47504653, { name: "gpfs", kind: "shared" }],
] as const);

/** @param type `f_type` of statfs, signed or not */
export function fileSystemOf(type: number): FileSystem {
  const number = type >>> 0;
  return known.get(number) ?? { name: `type 0x${number.toString(16)}`, kind: "shared" };
}

/**
 * Whether a directory lies on a file system of this machine, as far as is known; off Linux nothing is known. There one kernel makes
 * every change, so its times of directories are what every process sees, and a system call is quick. On network file systems, FUSE
 * and what several machines mount as one disk, times may be cached, and calls may hang.
 */
export async function isLocal(directory: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const { kind, name } = fileSystemOf((await statfs(directory)).type);
  // tmpfs forgets with the machine: qualification refuses it, tests live in it.
  return kind === "local" || name === "tmpfs";
}
