// System V IPC objects and POSIX message queues of a user: they belong to no process and outlive them all.

import { existsSync, readFileSync } from "node:fs";
import { mountsOf } from "./file-systems.ts";
import { runTool } from "./tools.ts";

const kinds = [
  { table: "/proc/sysvipc/shm", id: "shmid", option: "--shmem-id" },
  { table: "/proc/sysvipc/msg", id: "msqid", option: "--queue-id" },
  { table: "/proc/sysvipc/sem", id: "semid", option: "--semaphore-id" },
] as const;

/** How many were removed. */
export async function removeIpc(uid: number): Promise<number> {
  let removed = 0;
  for (const { option, ids } of objectsOf(uid)) {
    for (const id of ids) {
      // As the user, who may remove them as their owner or creator: the agent's unit does not have that capability.
      const { code } = await runTool("ipcrm", [option, id], { uid, gid: uid });
      if (code === 0) removed += 1;
    }
  }
  return removed + ((await queues(uid, "-delete")) ?? 0);
}

export async function countIpc(uid: number): Promise<{ objects: number; unseen: number }> {
  const objects = objectsOf(uid).reduce((sum, { ids }) => sum + ids.length, 0);
  const inQueues = await queues(uid);
  return { objects: objects + (inQueues ?? 0), unseen: inQueues === undefined ? 1 : 0 };
}

function objectsOf(uid: number): { option: string; ids: string[] }[] {
  return kinds.map(({ table, id, option }) => ({ option, ids: idsIn(textOf(table), id, uid) }));
}

/** Owned or created by the user: an owner may name another one. */
export function idsIn(table: string, id: string, uid: number): string[] {
  const [header = "", ...rows] = table.split("\n").filter(Boolean);
  const columns = header.trim().split(/\s+/);
  return rows.flatMap((row) => {
    const cells = row.trim().split(/\s+/);
    const cell = (name: string) => cells[columns.indexOf(name)] ?? "";
    return ["uid", "cuid"].some((owner) => Number(cell(owner)) === uid) ? [cell(id)] : [];
  });
}

/**
 * Queues are files of a file system that need not be mounted: they exist all the same.
 * Undefined where it is not mounted and cannot be.
 */
async function queues(uid: number, ...action: string[]): Promise<number | undefined> {
  if (!existsSync("/proc/sys/fs/mqueue")) return 0;
  const mounted = mountsOf(textOf("/proc/self/mountinfo")).find(({ type }) => type === "mqueue")?.path;
  // procfs always has this directory; the mount is seen by this process alone.
  const own = `mount -t mqueue mqueue /proc/driver && exec find /proc/driver "$@"`;
  const search = ["-maxdepth", "1", "-type", "f", "-uid", String(uid), "-printf", "q", ...action];
  const answer = mounted
    ? await runTool("find", [mounted, ...search])
    : await runTool("unshare", ["--mount", "sh", "-c", own, "sh", ...search]);
  return answer.code === 0 ? answer.stdout.length : undefined;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // A kernel without them.
  }
}
