// Real container engines of a test file: a docker daemon with all its files below a scratch directory, and podman with a
// store of its own. Nothing of them is left afterwards: no process, no mount, no cgroup, no file.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { scratchDirectory } from "../agent/scratch.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { buildTestImage, TEST_IMAGE } from "./image.ts";

/** `command`: with the options that lead to this engine; `cgroup`: below which its containers are. */
export type TestEngine = {
  command: readonly [string, ...string[]];
  cgroup: string;
  /** Runs one command of the engine. Returns what it printed. */
  run(...args: string[]): Promise<string>;
};

/** A user who exists nowhere. */
const NOBODY = 1_234_567;
const CGROUPS = "/sys/fs/cgroup";
const exec = promisify(execFile);

/** Debian's engine; a `docker` elsewhere on the PATH may be of another make, or only a client. */
export async function startTestDocker(): Promise<TestEngine> {
  const directory = scratchDirectory();
  const socket = `unix://${join(directory, "sock")}`;
  // A parent of its own, so that removing it cannot touch another daemon's.
  const cgroup = `holdfast-${process.pid}-${Date.now()}`;
  const engine = engineOf(["/usr/bin/docker", "-H", socket], cgroup);
  const daemon = spawn(
    "/usr/sbin/dockerd",
    [
      ...[
        "--bridge=none",
        "--iptables=false",
        "--ip-forward=false",
        "-H",
        socket,
        "--cgroup-parent",
        `/${cgroup}`,
      ],
      ...["--data-root", join(directory, "data"), "--exec-root", join(directory, "exec")],
      ...["--pidfile", join(directory, "pid"), "--log-level", "error"],
    ],
    // Its containerd writes a report of its stacks there when the daemon finds it slow.
    { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, TMPDIR: directory } },
  );
  let said = "";
  daemon.stderr.on("data", (bytes) => (said += bytes));
  const gone = once(daemon, "exit");
  atEnd(async () => {
    if (daemon.exitCode === null) await removeContainers(engine);
    daemon.kill("SIGTERM");
    await gone;
    await tidyUp(directory, cgroup);
  });
  while (!(await engine.run("version").catch(() => undefined))) {
    if (daemon.exitCode !== null) throw new Error(`dockerd has ended: ${said}`);
    await wait(50);
  }
  await engine.run("import", buildTestImage(), TEST_IMAGE);
  return engine;
}

export async function openTestPodman(): Promise<TestEngine> {
  // It wants a path of at most 50 characters.
  const directory = mkdtempSync("/tmp/holdfast-podman-");
  atEnd(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  const engine = engineOf(
    [
      ...(["/usr/bin/podman", "--root", join(directory, "root"), "--runroot", join(directory, "run")] as const),
      // crun, if it is there, refuses the cgroups of the machines that these tests run on.
      ...["--tmpdir", join(directory, "tmp"), "--runtime", "runc", "--cgroup-manager", "cgroupfs"],
      ...["--events-backend", "none"],
    ],
    "libpod_parent",
  );
  atEnd(async () => {
    await removeContainers(engine);
    await tidyUp(directory, engine.cgroup);
  });
  await engine.run("import", "-q", buildTestImage(), TEST_IMAGE);
  return engine;
}

/** podman as a user who was given no controllers, with an image that nothing can run: what it refuses, it refuses before that. */
export async function openRootlessPodman(): Promise<TestEngine> {
  const directory = mkdtempSync("/tmp/holdfast-rootless-");
  atEnd(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  for (const name of ["home", "run", "empty"]) mkdirSync(join(directory, name));
  for (const name of ["", "home", "run"]) chownSync(join(directory, name), NOBODY, NOBODY);
  const engine = engineOf(
    [
      ...(["/usr/bin/setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] as const),
      ...[
        "env",
        "-C",
        directory,
        `HOME=${join(directory, "home")}`,
        `XDG_RUNTIME_DIR=${join(directory, "run")}`,
        `TMPDIR=${join(directory, "run")}`,
      ],
      ...["/usr/bin/podman", "--root", join(directory, "home/root"), "--runroot", join(directory, "run/root")],
      ...["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"],
    ],
    "none",
  );
  // It keeps a process that holds its user namespace.
  atEnd(() => {
    const file = join(directory, "run/libpod/tmp/pause.pid");
    if (existsSync(file)) process.kill(Number(readFileSync(file, "utf8")), "SIGKILL");
  });
  await exec("tar", ["-C", directory, "-cf", join(directory, "image.tar"), "empty"]);
  await engine.run("import", "-q", join(directory, "image.tar"), TEST_IMAGE);
  return engine;
}

function engineOf(command: readonly [string, ...string[]], cgroup: string): TestEngine {
  const [file, ...options] = command;
  const run = async (...args: string[]) => (await exec(file, [...options, ...args])).stdout.trim();
  return { command, cgroup, run };
}

async function removeContainers({ run }: TestEngine): Promise<void> {
  const ids = (await run("ps", "-a", "-q")).split("\n").filter(Boolean);
  if (ids.length > 0) await run("rm", "-f", ...ids);
}

async function tidyUp(directory: string, cgroup: string): Promise<void> {
  for (const path of mountsBelow(directory)) await exec("umount", ["-l", path]);
  for (const controller of [".", ...readdirSync(CGROUPS)]) {
    const path = join(CGROUPS, controller, cgroup);
    if (existsSync(path)) removeCgroup(path);
  }
}

/** The innermost first. */
export function mountsBelow(directory: string): string[] {
  const points = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return points
    .flatMap((line) => line.split(" ")[4] ?? [])
    .filter((path) => path.startsWith(directory))
    .toReversed();
}

/** Devices that a file below it is behind, also if that has no name any more. */
export function loopsBelow(directory: string): string[] {
  return readdirSync("/sys/block").flatMap((name) => {
    const file = `/sys/block/${name}/loop/backing_file`;
    if (!existsSync(file)) return [];
    try {
      return readFileSync(file, "utf8").startsWith(`${directory}/`) ? [name] : [];
    } catch {
      // It was released meanwhile.
      return [];
    }
  });
}

/** One that is in use, by podman outside of this test, stays. */
function removeCgroup(path: string): void {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) removeCgroup(join(path, entry.name));
    }
    rmdirSync(path);
  } catch {
    // In use.
  }
}
