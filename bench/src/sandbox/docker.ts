// `true` in a container: through our driver, and by `docker run` with the same options. By hand, /work is a directory that is
// there already: the limit of its size, a file system for each run, is what the driver adds.

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { uuidv7 } from "@holdfast/kit/uuid";
import { runArguments } from "@holdfast/node-agent/drivers/sandbox/container/arguments";
import { docker, dockerDriver } from "@holdfast/node-agent/drivers/sandbox/docker";
import { runTag, type SandboxLimits } from "@holdfast/node-agent/drivers/sandbox/driver";
import { userOfRun } from "@holdfast/node-agent/drivers/sandbox/user-of-run";
import type { Lab } from "../lab.ts";
import type { Contestants } from "./contestants.ts";
import { type Dockerd, mountsBelow, startDockerd } from "./dockerd.ts";

export async function dockerContestants(lab: Lab, limits: SandboxLimits): Promise<Contestants> {
  const daemon = await startDockerd(lab);
  const { command, image } = daemon;
  const owner = uuidv7();
  const root = join(lab.directory(), "runs");
  const driver = dockerDriver({ owner, root, command, image, environment: {} });
  const { problem } = await driver.check();
  if (problem) throw new Error(`${problem.what}: ${problem.remedy}`);
  return {
    async ours() {
      const order = { id: uuidv7(), shell: "sh" as const, script: "true", env: {}, network: false, image, limits };
      const { exitCode } = await driver.run({ ...order, onOutput: () => undefined }).ended;
      if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
    },
    theirs: byHand(lab, daemon, limits),
    left: () => {
      const containers = daemon.ask("ps", "-a", "-q").split("\n").filter(Boolean).length;
      const [cgroups, mounts] = [daemon.cgroups().length, mountsBelow(root).length];
      return `containers: ${containers}, cgroups: ${cgroups}, mounts: ${mounts}, directories: ${readdirSync(root).length}`;
    },
  };
}

function byHand(lab: Lab, { command, image, ask }: Dockerd, limits: SandboxLimits): () => Promise<void> {
  const [file, ...options] = command;
  const owner = uuidv7();
  const work = join(lab.directory(), "work");
  mkdirSync(work);
  const facts = docker.facts(JSON.parse(ask(...docker.info)));
  return async () => {
    const id = uuidv7();
    const order = { id, shell: "sh" as const, image, network: false, limits };
    const user = { uid: 0, gid: 0, ...userOfRun(id) };
    const args = runArguments(docker, facts, order, { name: runTag(owner, id), owner, work, user, volumes: [] });
    const run = [...args.slice(0, args.indexOf(image) + 1), "-c", "true"];
    const child = spawn(file, [...options, ...run], { env: {}, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stdout.resume();
    child.stderr.on("data", (bytes: Buffer) => (said += bytes.toString()));
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`docker run ended with ${code}: ${said}`);
  };
}
