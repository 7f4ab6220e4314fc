// Loads task types with their first task: an idle agent should not keep them in memory.

import { loadCheckedType, loadExecutor } from "@holdfast/tasks/registry";
import type { LoadedType } from "./run.ts";

/** Undefined: this agent does not have the type. */
export async function loadTaskType(name: string): Promise<LoadedType | undefined> {
  const contract = await loadCheckedType(name);
  const executor = await loadExecutor(name);
  return contract && executor ? { contract, executor } : undefined;
}
