// The task types as simulated nodes run them: checked by their real contracts, run by their simulations, so that
// nothing of this host is read or changed.

import type { Executor, SimulatedNode } from "@holdfast/tasks/executor";
import { loadCheckedType, loadSimulation } from "@holdfast/tasks/registry";
import type { LoadedType } from "../executor/run.ts";

/** Of one node. `fails` is called before each task. */
export type SimTypes = (node: SimulatedNode & { fails: () => boolean }) => {
  load(name: string): Promise<LoadedType | undefined>;
};

/** Loaded once for all nodes of the process. */
export function createSimTypes(): SimTypes {
  const loaded = new Map<string, ReturnType<typeof load>>();
  const load = async (name: string) => {
    const [contract, simulation] = await Promise.all([loadCheckedType(name), loadSimulation(name)]);
    return contract && simulation && { contract, simulation };
  };
  return (node) => ({
    async load(name) {
      const known = loaded.get(name) ?? load(name);
      loaded.set(name, known);
      const type = await known;
      return type && { contract: type.contract, executor: moody(type.simulation(node), node.fails) };
    },
  });
}

function moody(executor: Executor, fails: () => boolean): Executor {
  const run = executor.run as (task: unknown) => Promise<unknown>;
  return {
    run: (async (task: unknown) => {
      if (fails()) throw new Error("simulated failure: some tasks of simulated nodes fail on purpose");
      return run(task);
    }) as Executor["run"],
  };
}
