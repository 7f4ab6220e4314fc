// Which limits cgroups really enforce for this agent: each hierarchy is tried with a cgroup, whose limits are read back.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { uuidv7 } from "@holdfast/kit/uuid";
import { type LimitCheck, runTag, type SandboxCheck, type SandboxLimits } from "../driver.ts";
import { type Controller, controllers, type Hierarchy } from "./hierarchies.ts";
import { createRunCgroup, filesFor } from "./run-cgroup.ts";

const TRIAL: SandboxLimits = { memoryBytes: 64 * 1024 * 1024, cpus: 1, pids: 16, diskBytes: 0 };
const WORK: LimitCheck = { enforced: true, by: "a file system in memory of that size; it counts as memory, too" };

/** `hierarchies`: those in which a run can be limited. */
export function checkCgroups(
  all: readonly Hierarchy[],
  owner: string,
): { limits: SandboxCheck["limits"]; hierarchies: Hierarchy[] } {
  const tried = all.map((hierarchy) => ({ hierarchy, problem: tryOut(hierarchy, owner) }));
  const limitOf = (controller: Controller): LimitCheck => {
    const found = tried.find(({ hierarchy }) => hierarchy.controllers.includes(controller));
    if (!found) return missing(controller);
    const { version, parent } = found.hierarchy;
    if (found.problem === undefined) return { enforced: true, by: `cgroup v${version}, ${parent}` };
    return {
      enforced: false,
      what: `the agent cannot create a cgroup in ${parent}: ${found.problem}`,
      remedy: "run the agent as root",
    };
  };
  const limits = Object.fromEntries(controllers.map((one) => [one, limitOf(one)])) as Record<
    Controller,
    LimitCheck
  >;
  return {
    limits: { ...limits, disk: WORK },
    hierarchies: tried.flatMap(({ hierarchy, problem }) => (problem === undefined ? [hierarchy] : [])),
  };
}

function missing(controller: Controller): LimitCheck {
  return {
    enforced: false,
    what: `this host has no cgroup controller ${controller}`,
    remedy: `boot the kernel with cgroup_enable=${controller}, and mount cgroups below /sys/fs/cgroup`,
  };
}

function tryOut(hierarchy: Hierarchy, owner: string): string | undefined {
  try {
    const tag = runTag(owner, uuidv7());
    const cgroup = createRunCgroup([hierarchy], { tag, limits: TRIAL });
    const wrong = wrongIn(join(hierarchy.parent, tag), hierarchy);
    // Empty: it is removed before anything has to be waited for.
    void cgroup.remove();
    return wrong;
  } catch (error) {
    return (error as Error).message;
  }
}

function wrongIn(path: string, { version, controllers: own }: Hierarchy): string | undefined {
  const files = own.flatMap((one) => filesFor(one, version, TRIAL)).filter(({ optional }) => !optional);
  const wrong = files.find(({ file, value }) => readFileSync(join(path, file), "utf8").trim() !== value);
  return wrong && `${wrong.file} cannot be set`;
}
