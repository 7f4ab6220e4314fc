// The agent's VMs do the work, step by step with a journal; this only connects a task with them.

import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ taskId, params, progress, signal, host, fail }) {
    if (!host.vms) throw fail("vm_host_unavailable");
    return host.vms.launch({
      ...{ taskId, wanted: params, signal },
      enter: (phase) => {
        signal.throwIfAborted();
        progress(phase);
      },
    });
  },
  /** VMs outlive the agent: this one may run although the agent ended before it could report that. */
  recover: async ({ taskId, host }) => host.vms?.recover(taskId),
});
