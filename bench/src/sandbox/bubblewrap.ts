// `true` in bubblewrap: through our driver, and by hand with the same options in the same kind of cgroup.

import { spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { uuidv7 } from "@holdfast/kit/uuid";
import { descriptors, GROUP, optionsOf, PASSWD } from "@holdfast/node-agent/drivers/sandbox/bubblewrap/arguments";
import { bubblewrapDriver } from "@holdfast/node-agent/drivers/sandbox/bubblewrap/bubblewrap";
import { seccompFilter } from "@holdfast/node-agent/drivers/sandbox/bubblewrap/seccomp";
import { hierarchiesOfHost } from "@holdfast/node-agent/drivers/sandbox/cgroups/hierarchies";
import { createRunCgroup } from "@holdfast/node-agent/drivers/sandbox/cgroups/run-cgroup";
import { runTag, type SandboxLimits } from "@holdfast/node-agent/drivers/sandbox/driver";
import type { Lab } from "../lab.ts";
import type { Contestants } from "./contestants.ts";

const USER = 1_899_999_999;

export async function bubblewrapContestants(lab: Lab, limits: SandboxLimits): Promise<Contestants> {
  const owner = uuidv7();
  const driver = bubblewrapDriver({ owner });
  const { problem } = await driver.check();
  if (problem) throw new Error(`${problem.what}: ${problem.remedy}`);
  return {
    async ours() {
      const order = {
        id: uuidv7(),
        shell: "sh" as const,
        script: "true",
        env: {},
        network: false,
        image: "",
        limits,
      };
      const { exitCode } = await driver.run({ ...order, onOutput: () => undefined }).ended;
      if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
    },
    theirs: byHand(lab, owner, limits),
    left: () => leftOf(owner, limits),
  };
}

/**
 * As an expert would: options as arguments, files for what bubblewrap reads, and a shell that enters the cgroup before it becomes
 * bubblewrap. Moved by its parent instead, bubblewrap has started its child already, and no limit holds for the script.
 */
function byHand(lab: Lab, owner: string, limits: SandboxLimits): () => Promise<void> {
  const directory = lab.directory();
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(directory, name), content);
    return join(directory, name);
  };
  const contents: [number, string][] = [
    [descriptors.filter, file("filter", seccompFilter(process.arch as "x64" | "arm64"))],
    [descriptors.passwd, file("passwd", PASSWD)],
    [descriptors.group, file("group", GROUP)],
  ];
  const options = optionsOf({ env: {}, secret: undefined, network: false, limits });
  const hierarchies = hierarchiesOfHost();
  const user = [`--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"];
  return async () => {
    const tag = runTag(owner, uuidv7());
    const cgroup = createRunCgroup(hierarchies, { tag, limits });
    const enter = hierarchies.map(({ parent }) => `echo 0 > '${join(parent, tag, "cgroup.procs")}'`);
    const stdio: ("ignore" | "pipe" | number)[] = ["ignore", "pipe", "pipe", "ignore", "ignore", "pipe"];
    const opened = contents.map(([fd, path]) => {
      while (stdio.length <= fd) stdio.push("ignore");
      stdio[fd] = openSync(path, "r");
      return stdio[fd] as number;
    });
    const program = `${enter.join(" && ")} && exec "$@"`;
    const wrapped = ["setpriv", ...user, "/usr/bin/bwrap", ...options, "--", "sh", "-c", "true"];
    const child = spawn("/bin/sh", ["-c", program, "sh", ...wrapped], { cwd: "/", stdio });
    for (const fd of opened) closeSync(fd);
    for (const stream of child.stdio) stream?.on("data", () => undefined);
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`bubblewrap by hand ended with ${code}`);
    await cgroup.remove();
  };
}

/** Of /work, by its size: other mounts come and go on a host. */
function mountCount({ diskBytes }: SandboxLimits): number {
  const size = `size=${diskBytes / 1024}k`;
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(size)).length;
}

function leftOf(owner: string, limits: SandboxLimits): string {
  const cgroups = hierarchiesOfHost().flatMap(({ parent }) =>
    readdirSync(parent).filter((name) => name.includes(owner)),
  );
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter((pid) => pid !== "" && nameOf(pid) === "bwrap");
  return `cgroups: ${cgroups.length}, processes: ${children.length}, mounts: ${mountCount(limits)}`;
}

function nameOf(pid: string): string {
  return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
}
