// Scripts in containers of docker.

import { type ContainerOptions, containerDriver } from "./container/driver.ts";
import { type Engine, limitsOf, missingImage, noShell } from "./container/engine.ts";
import type { SandboxDriver } from "./driver.ts";

type DockerInfo = {
  ServerErrors?: string[];
  CgroupVersion?: string;
  CgroupDriver?: string;
  MemoryLimit?: boolean;
  PidsLimit?: boolean;
  CpuCfsQuota?: boolean;
  SecurityOptions?: string[];
};

export const docker: Engine = {
  name: "docker",
  info: ["info", "--format", "{{json .}}"],
  facts(value) {
    const info = value as DockerInfo;
    const rootless = (info.SecurityOptions ?? []).some((one) => one.startsWith("name=rootless"));
    const able = info.CgroupDriver !== "none";
    return {
      problem: info.ServerErrors?.join(" "),
      rootless,
      limits: limitsOf(
        {
          memory: able && info.MemoryLimit === true,
          pids: able && info.PidsLimit === true,
          cpu: able && info.CpuCfsQuota === true,
        },
        {
          who: `docker, cgroup v${info.CgroupVersion ?? "1"}`,
          remedy: rootless
            ? "delegate the controllers cpu, memory and pids to the user of docker, on a host with cgroup v2, or use docker as root"
            : "start the kernel with the cgroup controllers cpu, memory and pids, and restart docker",
        },
      ),
    };
  },
  remove: ["rm", "-f"],
  arguments: () => [],
  ownedBy: ({ uid, gid }) => `uid=${uid},gid=${gid}`,
  problems: [
    {
      pattern: /permission denied while trying to connect|dial unix .*permission denied/i,
      explain: ({ user }) => ({
        what: `the user ${user} may not use docker`,
        remedy: `run as root: usermod -aG docker ${user}; then restart the agent. Members of that group can become root on this host`,
      }),
    },
    {
      pattern:
        /cannot connect to the docker daemon|is the docker daemon running|error during connect|connection refused/i,
      explain: () => ({ what: "the docker daemon does not respond", remedy: "start it: systemctl start docker" }),
    },
    missingImage("docker pull"),
    noShell,
  ],
};

export function dockerDriver(options: ContainerOptions): SandboxDriver {
  return containerDriver(docker, options);
}
