// The agent's VMs do the work; this only connects a task with them.

import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    if (!host.vms) throw fail("vm_host_unavailable");
    const { vm_id: vmId, grace_seconds } = params;
    return host.vms.terminate({ vmId, graceMs: grace_seconds * 1000, enter: (phase) => progress(phase), signal });
  },
});
