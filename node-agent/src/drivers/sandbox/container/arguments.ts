// The arguments of `docker run` and `podman run`. Everybody on the host can read them, and the engine keeps them: neither script,
// secret nor environment of a step is among them.

import { type SandboxOrder, SECRET_FILE } from "../driver.ts";
import type { Engine, EngineFacts } from "./engine.ts";
import { programOf } from "./program.ts";

export const OWNER_LABEL = "holdfast.owner";
export const RUN_LABEL = "holdfast.run";

/** Of every file that a script has open at once. */
const MOST_OPEN_FILES = 4096;

export type RunPlace = {
  name: string;
  owner: string;
  /** Of the host, for /work. */
  work: string;
  user: { uid: number; gid: number };
  /** File with a narrower filter of system calls than the engine's own. */
  seccomp?: string | undefined;
  /** That the image declares, and that would be writable. */
  volumes: readonly string[];
};

type Order = Pick<SandboxOrder, "id" | "shell" | "image" | "network" | "limits" | "secret">;

export function runArguments(engine: Engine, facts: EngineFacts, order: Order, place: RunPlace): string[] {
  const { uid, gid } = place.user;
  const { memory, pids, cpu } = facts.limits;
  const { limits } = order;
  // Of its user: the runtime gives the mount the mode that the directory has in the image, whatever is ordered.
  const tmpfs = (path: string, options: string) => [
    "--tmpfs",
    `${path}:rw,nosuid,nodev,${engine.ownedBy(place.user)},${options}`,
  ];
  return [
    ...["run", "--rm", "-i", "--pull", "never", "--name", place.name],
    ...["--label", `${OWNER_LABEL}=${place.owner}`, "--label", `${RUN_LABEL}=${order.id}`],
    // What the script prints is nobody's but the agent's.
    ...["--log-driver", "none", "--no-healthcheck", "--init", "--hostname", "sandbox", "--ipc", "private"],
    ...["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", `${uid}:${gid}`],
    ...(place.seccomp === undefined ? [] : ["--security-opt", `seccomp=${place.seccomp}`]),
    ...(order.network ? [] : ["--network", "none"]),
    ...(memory.enforced
      ? ["--memory", String(limits.memoryBytes), "--memory-swap", String(limits.memoryBytes)]
      : []),
    ...(pids.enforced ? ["--pids-limit", String(limits.pids)] : []),
    ...(cpu.enforced ? ["--cpus", String(limits.cpus)] : []),
    ...["--ulimit", `nofile=${MOST_OPEN_FILES}:${MOST_OPEN_FILES}`, "--ulimit", "core=0:0"],
    ...["--mount", ["type=bind", csv(`src=${place.work}`), "dst=/work"].join(","), "--workdir", "/work"],
    ...tmpfs("/tmp", `exec,mode=1777,size=${limits.memoryBytes}`),
    ...(order.secret === undefined ? [] : tmpfs(parentOf(SECRET_FILE), "noexec,mode=0700,size=1m")),
    ...place.volumes.flatMap((path) => ["--tmpfs", `${path}:ro,size=4k`]),
    ...["--env", "HOME=/work", "--env", "TMPDIR=/tmp", "--env", "LANG=C.UTF-8"],
    ...engine.arguments(facts),
    ...entry(programOf(order.shell), order.image),
  ];
}

/** An image may have an entry point, which would run first. */
function entry([program = "", ...args]: string[], image: string): string[] {
  return ["--entrypoint", program, image, ...args];
}

/** Engines read mounts as comma-separated values. */
function csv(field: string): string {
  return /[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
