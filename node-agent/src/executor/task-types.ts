// Loads task types with their first task: their schemas need a library that an idle agent should
// not keep in memory.

import { loadContract, loadExecutor } from "@holdfast/tasks/registry";
import type { LoadedType } from "./run.ts";

/** Undefined: this agent does not have the type. */
export async function loadTaskType(name: string): Promise<LoadedType | undefined> {
  const contract = await loadContract(name);
  const executor = await loadExecutor(name);
  return contract && executor ? { contract, executor } : undefined;
}
