// Which file systems of this host are local and can be written: where a user's files can be. Network file
// systems belong to other hosts too, and the kernel's own (proc, sysfs, cgroup) hold nothing that outlives a process.

import { lstatSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

const localTypes: ReadonlySet<string> = new Set([
  ...["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "bcachefs", "zfs", "nilfs2"],
  ...["tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "overlay"],
]);
/** systemd mounts one for each user with a session and removes it with the last one. */
const OF_SESSIONS = "/run/user/";

/** Mount points, one for each local file system that can be written. */
export function localFileSystems(mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): string[] {
  const mounts = mountsOf(mountinfo).filter(
    ({ type, readOnly, path }) => localTypes.has(type) && !readOnly && !path.startsWith(OF_SESSIONS),
  );
  // A later mount on the same path hides the earlier one.
  const visible = [...new Map(mounts.map((mount) => [mount.path, mount])).values()];
  return visible
    .filter((one) => !visible.some((other) => other !== one && shows(other, one)))
    .map(({ path }) => path);
}

/** Whether users without any rights of their own can come to the path. */
export function isReachable(path: string): boolean {
  for (let at = dirname(path); ; at = dirname(at)) {
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (!found || (found.mode & 0o001) === 0) return false;
    if (at === "/") return true;
  }
}

export type Mount = {
  device: string;
  root: string;
  path: string;
  type: string;
  readOnly: boolean;
  /** Of the file system, not of the mount. */
  options: readonly string[];
};

/** See proc_pid_mountinfo(5). */
export function mountsOf(mountinfo: string): Mount[] {
  return mountinfo
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [mount = "", source = ""] = line.split(" - ");
      const [, , device = "", root = "", path = "", ofMount = ""] = mount.split(" ");
      const [type = "", , ofFileSystem = ""] = source.split(" ");
      const options = ofFileSystem.split(",");
      const readOnly = [...ofMount.split(","), ...options].includes("ro");
      return { device, root: unescaped(root), path: unescaped(path), type, readOnly, options };
    });
}

/** `one` shows all that `other` shows: the same file system from the same directory or one above. */
function shows(one: Mount, other: Mount): boolean {
  if (one.device !== other.device) return false;
  if (one.root === other.root) return one.path.length < other.path.length;
  return one.root === "/" || other.root.startsWith(`${one.root}/`);
}

function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
}
