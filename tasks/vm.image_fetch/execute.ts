// The agent's VMs do the work; this only connects a task with them.

import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    if (!host.vms) throw fail("vm_host_unavailable");
    return host.vms.fetchImage({
      ...{ ...params, signal },
      enter: (phase) => {
        signal.throwIfAborted();
        progress(phase, {});
      },
      progress: (received) => progress("downloading", received),
    });
  },
});
