// Scripts in containers of podman, which has no daemon. Without root it accepts limits that have no effect where the user was
// given no controllers; what `podman info` lists counts.

import { type ContainerOptions, containerDriver } from "./container/driver.ts";
import { type Engine, limitsOf, missingImage, noShell } from "./container/engine.ts";
import type { SandboxDriver } from "./driver.ts";

type Security = { rootless?: boolean; seccompProfilePath?: string };
type PodmanInfo = {
  host?: { cgroupVersion?: string; cgroupControllers?: string[] | null; security?: Security };
};

export const podman: Engine = {
  name: "podman",
  info: ["info", "--format", "json"],
  facts(value) {
    const { host = {} } = value as PodmanInfo;
    const rootless = host.security?.rootless === true;
    // With the first version of cgroups, a user who is not root can be given none.
    const listed = rootless && host.cgroupVersion !== "v2" ? [] : (host.cgroupControllers ?? []);
    const has = (name: string) => listed.includes(name);
    return {
      rootless,
      seccompProfile: host.security?.seccompProfilePath || "/usr/share/containers/seccomp.json",
      limits: limitsOf(
        { memory: has("memory"), pids: has("pids"), cpu: has("cpu") },
        {
          who: `podman${rootless ? " without root" : ""}, cgroup ${host.cgroupVersion ?? "v1"}`,
          remedy: rootless
            ? "run the agent as root, or delegate the controllers cpu, memory and pids to its user on a host with cgroup v2"
            : "start the kernel with the cgroup controllers cpu, memory and pids",
        },
      ),
    };
  },
  remove: ["rm", "-f", "-t", "0"],
  arguments: ({ rootless }) => [
    // Otherwise it passes on the proxies of the agent, with their passwords, and makes /run and /var/tmp writable.
    ...["--http-proxy=false", "--read-only-tmpfs=false", "--image-volume", "ignore"],
    // It would raise this to a number that not every host allows. Processes are counted by user, and each run has its own.
    ...["--ulimit", "nproc=4096:4096"],
    ...(rootless ? ["--userns", "keep-id"] : []),
  ],
  ownedBy: () => "U",
  problems: [
    {
      pattern: /catatonit|container-init binary|init binary/i,
      explain: () => ({ what: "podman has no init program", remedy: "install the package catatonit" }),
    },
    missingImage("podman pull"),
    noShell,
    {
      pattern: /newuidmap|subuid|user namespace/i,
      explain: ({ user }) => ({
        what: `podman cannot run containers as the user ${user}`,
        remedy: `install the package uidmap, and run as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${user}`,
      }),
    },
  ],
};

export function podmanDriver(options: ContainerOptions): SandboxDriver {
  return containerDriver(podman, options);
}
