// Loads task types when the first task of one comes: their schemas bring a library along that an
// agent at rest should not carry.

import { loadContract, loadExecutor } from "@holdfast/tasks/registry";
import type { LoadedType } from "./run.ts";

/** Undefined: this agent has no such type. */
export async function loadTaskType(name: string): Promise<LoadedType | undefined> {
  const contract = await loadContract(name);
  const executor = await loadExecutor(name);
  return contract && executor ? { contract, executor } : undefined;
}
