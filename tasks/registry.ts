// Finds the task types: the folders beside this file. Read from the disk, so that a new folder is
// all a new type needs.

import { existsSync, readdirSync } from "node:fs";
import type { CheckedTaskType } from "./checked-type.ts";
import type { Executor, Simulation } from "./executor.ts";
import type { AnyTaskType } from "./type.ts";

const here = new URL("./", import.meta.url);

/** On the wire a type is `family.name`; no other folder has a dot inside. */
const typeName = /^[a-z]+\.[a-z_]+$/;

export function taskTypeNames(): string[] {
  return readdirSync(here, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && typeName.test(entry.name))
    .map((entry) => entry.name)
    .sort();
}

/** Only a name that stands in `taskTypeNames()`: nothing from a wire becomes a path. */
export async function loadContract(name: string): Promise<AnyTaskType | undefined> {
  if (!taskTypeNames().includes(name)) return undefined;
  const { default: contract } = (await import(new URL(`${name}/contract.ts`, here).href)) as {
    default: AnyTaskType;
  };
  if (contract.type !== name) throw new Error(`tasks/${name} declares the type ${contract.type}`);
  return contract;
}

/** The contract as agents have it, without a schema library. */
export async function loadCheckedType(name: string): Promise<CheckedTaskType | undefined> {
  if (!taskTypeNames().includes(name)) return undefined;
  const file = new URL(`${name}/contract.generated.ts`, here);
  if (!existsSync(file)) throw new Error(`tasks/${name} has no contract.generated.ts; run \`npm run generate\``);
  return ((await import(file.href)) as { default: CheckedTaskType }).default;
}

export async function loadAllContracts(): Promise<Map<string, AnyTaskType>> {
  const contracts = new Map<string, AnyTaskType>();
  for (const name of taskTypeNames()) {
    const contract = await loadContract(name);
    if (contract) contracts.set(name, contract);
  }
  return contracts;
}

export async function loadExecutor(name: string): Promise<Executor | undefined> {
  if (!taskTypeNames().includes(name)) return undefined;
  const { default: executor } = (await import(new URL(`${name}/execute.ts`, here).href)) as { default: Executor };
  return executor;
}

/** Undefined: simulated nodes do not have this type. */
export async function loadSimulation(name: string): Promise<Simulation | undefined> {
  const file = new URL(`${name}/simulate.ts`, here);
  if (!taskTypeNames().includes(name) || !existsSync(file)) return undefined;
  return ((await import(file.href)) as { default: Simulation }).default;
}
