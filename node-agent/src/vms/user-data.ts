// User data with secrets, which the control plane keeps out of tasks: this host takes it while it launches the VM. Only the text whose
// digest is in the signed task is used. It is in the seed of the VM and nowhere else on the host.

import { hash } from "node:crypto";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { TaskFailed } from "@holdfast/tasks/executor";

export async function withUserData(
  wanted: VmLaunch,
  take: (vmId: string) => Promise<string | null>,
): Promise<VmLaunch> {
  const { vm_id, user_data_sha256 } = wanted;
  if (user_data_sha256 === undefined) return wanted;
  let text: string | null;
  try {
    text = await take(vm_id);
  } catch (error) {
    throw new TaskFailed(
      "vm_user_data_unavailable",
      `The VM's user data could not be taken: ${(error as Error).message}`,
    );
  }
  if (text === null)
    throw new TaskFailed("vm_user_data_unavailable", "The control plane has no user data for this VM.");
  if (hash("sha256", text) !== user_data_sha256)
    throw new TaskFailed("vm_user_data_unavailable", "The VM's user data does not have the digest of the task.");
  return { ...wanted, user_data: text };
}
