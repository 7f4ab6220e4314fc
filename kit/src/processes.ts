// Information about other processes from /proc. A pid alone identifies no process: it is reused. A pid with
// its start time identifies exactly one process of this boot.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export type ProcessIdentity = { pid: number; startTicks: string };

export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat && stat.state !== "Z" ? { pid, startTicks: stat.startTicks } : undefined;
}

export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.startTicks === process.startTicks;
}

export function signalIfAlive(target: ProcessIdentity, signal: NodeJS.Signals): void {
  try {
    if (isAlive(target)) process.kill(target.pid, signal);
  } catch {
    // Gone between the question and the signal.
  }
}

/** Whether they are all gone within the time. They need not be children of ours, so there is no event to wait for. */
export async function allEnded(processes: readonly ProcessIdentity[], withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (processes.some(isAlive)) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return true;
}

/** What `ps` would show, for a message to a person; undefined when it has exited or cannot be read. */
export function commandLine(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Who listens on this TCP port. Without root only processes of the same user can be named. */
export function holderOfPort(port: number): { pid?: number; command?: string } | undefined {
  const inode = listeningInode(port);
  if (inode === undefined) return undefined;
  const link = `socket:[${inode}]`;
  for (const pid of readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)) {
    if (holdsFile(pid, link)) return { pid, command: commandLine(pid) };
  }
  return {};
}

export type ProcessStat = { state: string; parent: number; group: number; session: number; startTicks: string };

export function readStat(pid: number): ProcessStat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTicks] = [fields[0], fields[19]];
    const [parent = 0, group = 0, session = 0] = fields.slice(1, 4).map(Number);
    return state && startTicks ? { state, parent, group, session, startTicks } : undefined;
  } catch {
    return undefined;
  }
}

function listeningInode(port: number): string | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const listen = "0A";
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    let text: string;
    try {
      text = readFileSync(table, "utf8");
    } catch {
      continue;
    }
    for (const line of text.split("\n").slice(1)) {
      const fields = line.trim().split(/\s+/);
      if (fields[1]?.endsWith(suffix) && fields[3] === listen) return fields[9];
    }
  }
  return undefined;
}

function holdsFile(pid: number, link: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`) === link;
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}
