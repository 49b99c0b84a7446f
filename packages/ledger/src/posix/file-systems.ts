/** Which file systems are this machine's own. */
import { statfs } from "node:fs/promises";

/**
 * By the `f_type` of statfs(2). On these, one kernel makes every change, so its times of directories are what every
 * process sees, and a system call is quick. Not NFS, SMB, Ceph, GlusterFS, FUSE, 9p and virtiofs, nor what several machines
 * mount as one disk (GFS2, OCFS2): there, times may be cached, and calls may hang.
 */
const LOCAL_TYPES: ReadonlyMap<number, string> = new Map([
  [0xef53, "ext2, ext3, ext4"],
  [0x58465342, "XFS"],
  [0x9123683e, "Btrfs"],
  [0xf2f52010, "F2FS"],
  [0x2fc12fc1, "ZFS"],
  [0xca451a4e, "bcachefs"],
  // Its changes go to its upper layer, which must be a local file system.
  [0x794c7630, "overlayfs"],
  // Forgets with the machine: qualification refuses it, tests live in it.
  [0x01021994, "tmpfs"],
]);

/** Whether a directory lies on a file system of this machine, as far as is known. Off Linux nothing is known. */
export async function isLocal(directory: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const { type } = await statfs(directory);
  return LOCAL_TYPES.has(type >>> 0);
}
