// The agent's VMs do the work; this only connects a task with them.

import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    if (!host.vms) throw fail("vm_host_unavailable");
    progress("reading");
    const { vm_id: vmId, from, most_bytes: most, wait_seconds } = params;
    const read = await host.vms.serialLog({ vmId, from, most, waitMs: wait_seconds * 1000, signal });
    if (!read) throw fail("vm_missing");
    return { text: read.text, next: read.place, skipped: read.skipped };
  },
});
