// Removes the VMs of a host whose agent is being uninstalled: nobody would end them any more. Their records alone say what there is.
// The agent must not run meanwhile.

import { undoPhases } from "@holdfast/tasks/phases/phases";
import { qemuDriver } from "../drivers/qemu/qemu-driver.ts";
import { launchPhases } from "./launch-phases.ts";
import { recordedVms, storeOf } from "./lifetime.ts";

/** Returns the ids of those that were removed. Throws at the first one of which something is left. */
export async function removeAllVms(stateDir: string): Promise<string[]> {
  const context = { driver: qemuDriver, directories: { cloudInit: "", overlays: "" }, serialBytes: 0 };
  const vmIds = recordedVms(stateDir);
  for (const vmId of vmIds) await undoPhases({ phases: launchPhases, context, store: storeOf(stateDir, vmId) });
  return vmIds;
}
