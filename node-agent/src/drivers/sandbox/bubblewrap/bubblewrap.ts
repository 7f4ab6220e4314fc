// Scripts in namespaces of their own, made by bubblewrap without any daemon, as a user that owns nothing on this host. /work and
// /tmp are in memory and belong to the run's mount namespace, so that after any crash nothing is left of them. bubblewrap
// waits for its options before it does anything: until then it is moved into the cgroup of the run, and all that it starts is born there.

import { existsSync } from "node:fs";
import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { uuidv7 } from "@holdfast/kit/uuid";
import { checkCgroups } from "../cgroups/check.ts";
import { type Hierarchy, hierarchiesOfHost } from "../cgroups/hierarchies.ts";
import { cgroupsOf, createRunCgroup, type RunCgroup, removeCgroups } from "../cgroups/run-cgroup.ts";
import {
  runTag,
  type SandboxCheck,
  type SandboxDriver,
  type SandboxEnd,
  type SandboxOptions,
  type SandboxOrder,
} from "../driver.ts";
import { problemOf } from "./problems.ts";
import { startBubblewrap, type Wrapped } from "./process.ts";
import { type WorkWatch, watchWork } from "./work.ts";

export type BubblewrapOptions = Pick<SandboxOptions, "owner"> & {
  /** For tests: of another host. */
  program?: string;
  hierarchies?: readonly Hierarchy[];
  /** For tests of crashes: called whenever a run has got there. */
  reached?: (point: RunPoint) => void;
};

export const runPoints = ["limited", "started", "complete", "begun", "ended", "removed"] as const;
type RunPoint = (typeof runPoints)[number];

/** bubblewrap itself and the first process of the namespace count as processes of the run. */
const OWN_PROCESSES = 2;

export function bubblewrapDriver({
  owner,
  program = findProgram(),
  hierarchies = hierarchiesOfHost(),
  reached = () => undefined,
}: BubblewrapOptions): SandboxDriver {
  let usable: { limits: SandboxCheck["limits"]; hierarchies: readonly Hierarchy[] } | undefined;
  const limiting = () => {
    usable ??= checkCgroups(hierarchies, owner);
    return usable;
  };

  const driver: SandboxDriver = {
    name: "bubblewrap",
    provides: { isolation: true, images: false },
    async check() {
      usable = undefined;
      const { limits } = limiting();
      if (!program) return { backend: "bubblewrap", problem: problemOf(undefined), limits };
      const trial = driver.run({ ...TRIAL, id: uuidv7() });
      const problem = await trial.ended.then(
        () => undefined,
        (error: unknown) => problemOf((error as Error).message),
      );
      return { backend: "bubblewrap", problem, limits };
    },
    run(order) {
      const state: RunState = { killed: false, exited: false };
      const work = async (): Promise<SandboxEnd> => {
        if (!program) throw new Error(problemOf(undefined).what);
        const limits = { ...order.limits, pids: order.limits.pids + OWN_PROCESSES };
        const cgroup = createRunCgroup(limiting().hierarchies, { tag: runTag(owner, order.id), limits });
        reached("limited");
        try {
          return await runWrapped(program, { order, cgroup, state, reached });
        } finally {
          await cgroup.remove();
          reached("removed");
        }
      };
      return {
        ended: work(),
        kill() {
          // Of a script that has ended by itself, the exit code is known.
          if (!state.exited) state.killed = true;
          state.wrapped?.kill();
        },
      };
    },
    async recover() {
      const left = cgroupsOf(hierarchies, owner);
      for (const paths of left.values()) await removeCgroups(paths);
      return left.size;
    },
  };
  return driver;
}

type RunState = { killed: boolean; exited: boolean; wrapped?: Wrapped };
type Work = { order: SandboxOrder; cgroup: RunCgroup; state: RunState; reached: (point: RunPoint) => void };

async function runWrapped(program: string, { order, cgroup, state, reached }: Work): Promise<SandboxEnd> {
  const wrapped = startBubblewrap(program, order, cgroup.attach);
  state.wrapped = wrapped;
  reached("started");
  // Killed before there was anything to kill.
  if (state.killed) wrapped.kill();
  let work: WorkWatch | undefined;
  try {
    const first = await wrapped.ready;
    if (first) {
      reached("complete");
      work = watchWork(first);
      wrapped.begin();
      reached("begun");
    }
    const exitCode = await wrapped.ended;
    state.exited = true;
    reached("ended");
    const hit = [...cgroup.hit(), ...(work?.wasFull() ? (["disk"] as const) : [])];
    return { exitCode: state.killed ? null : exitCode, hit: enforcedLimits.filter((one) => hit.includes(one)) };
  } catch (error) {
    wrapped.kill();
    if (state.killed) return { exitCode: null, hit: [] };
    throw error;
  } finally {
    work?.close();
  }
}

const MEBIBYTE = 1024 * 1024;
const TRIAL: Omit<SandboxOrder, "id"> = {
  ...{ shell: "sh", script: "true", env: {}, network: false, image: "" },
  limits: { memoryBytes: 64 * MEBIBYTE, cpus: 1, pids: 16, diskBytes: MEBIBYTE },
  onOutput: () => undefined,
};

function findProgram(): string | undefined {
  return ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"].find(existsSync);
}
