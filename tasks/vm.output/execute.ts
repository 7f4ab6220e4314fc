// The agent's VMs do the work; this only connects a task with them.

import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ params, signal, host, fail }) {
    if (!host.vms) throw fail("vm_host_unavailable");
    return host.vms.output(params, signal);
  },
});
