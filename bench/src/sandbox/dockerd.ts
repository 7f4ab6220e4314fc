// A docker daemon of the bench's own, with all its files below a directory of the lab, and an image of busybox: there is no
// registry. Its cgroups have a parent of their own, so that what is left can be counted and removed.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Lab } from "../lab.ts";

export type Dockerd = {
  /** The client, with the options that lead to this daemon. */
  command: readonly [string, ...string[]];
  image: string;
  ask(...args: string[]): string;
  /** Of containers, in every hierarchy. */
  cgroups(): string[];
};

const CGROUPS = "/sys/fs/cgroup";
const IMAGE = "localhost/holdfast-bench:1";
const [DAEMON, CLIENT, BUSYBOX] = ["/usr/sbin/dockerd", "/usr/bin/docker", "/bin/busybox"];
const LOOK_MS = 100;
const MOST_LOOKS = 600;

export async function startDockerd(lab: Lab): Promise<Dockerd> {
  for (const program of [DAEMON, CLIENT, BUSYBOX]) {
    if (!existsSync(program)) throw new Error(`${program} is missing: apt-get install docker.io busybox-static`);
  }
  const directory = lab.directory();
  const cgroup = `holdfast-bench-${process.pid}`;
  const command = [CLIENT, "-H", `unix://${join(directory, "sock")}`] as const;
  const [file, ...options] = command;
  const ask = (...args: string[]) => {
    return execFileSync(file, [...options, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  };
  const parents = () => [".", ...readdirSync(CGROUPS)].map((one) => join(CGROUPS, one, cgroup)).filter(existsSync);
  // Done after the daemon has ended.
  lab.onClose(async () => {
    for (const path of mountsBelow(directory)) execFileSync("umount", ["-l", path]);
    for (const path of parents()) removeCgroup(path);
  });
  const daemon = lab.start({
    command: DAEMON,
    args: [
      ...["--bridge=none", "--iptables=false", "--ip-forward=false", "--cgroup-parent", `/${cgroup}`],
      ...["-H", `unix://${join(directory, "sock")}`, "--pidfile", join(directory, "pid"), "--log-level", "error"],
      ...["--data-root", join(directory, "data"), "--exec-root", join(directory, "exec")],
    ],
    env: { TMPDIR: directory },
  });
  for (let look = 0; !responds(ask); look += 1) {
    if (look === MOST_LOOKS) throw new Error(`dockerd does not respond: ${daemon.said()}`);
    await wait(LOOK_MS);
  }
  ask("import", imageFile(directory), IMAGE);
  const cgroups = () =>
    parents().flatMap((parent) => {
      const entries = readdirSync(parent, { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(parent, name));
    });
  return { command, image: IMAGE, ask, cgroups };
}

function responds(ask: Dockerd["ask"]): boolean {
  try {
    return ask("version") !== "";
  } catch {
    return false;
  }
}

/** With the directories that the daemon mounts into: where it has to make one while others start, it may be closed to the user. */
function imageFile(directory: string): string {
  const root = join(directory, "image");
  for (const path of ["bin", "sbin", "proc", "sys", "dev", "etc", "tmp", "work"])
    mkdirSync(join(root, path), { recursive: true });
  copyFileSync(BUSYBOX, join(root, "bin/busybox"));
  chmodSync(join(root, "bin/busybox"), 0o755);
  for (const name of ["sh", "cat", "true"]) copyFileSync(BUSYBOX, join(root, "bin", name));
  const file = join(directory, "image.tar");
  execFileSync("tar", ["-C", root, "--owner=0", "--group=0", "-cf", file, "."]);
  return file;
}

/** The innermost first. */
export function mountsBelow(directory: string): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[4] ?? [])
    .filter((path) => path.startsWith(directory))
    .toReversed();
}

function removeCgroup(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeCgroup(join(path, entry.name));
  }
  rmdirSync(path);
}
