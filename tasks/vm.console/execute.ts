// The agent's terminals do the work; the VM only says where its console is.

import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ taskId, params, progress, signal, host, fail }) {
    progress("opening");
    const { vms } = host;
    const { vm_id } = params;
    if (!vms) throw fail("terminal_vm_ended", "The agent on this node does not run VMs.");
    await host.terminals.open({
      ...{ taskId, sessionId: params.session_id, correlationId: params.correlation_id, signal },
      // A serial port has no size.
      size: { cols: 80, rows: 24 },
      at: async () => ({ console: await vms.console(vm_id) }),
      withinMs: params.within_seconds * 1000,
      detachedMs: params.detached_seconds * 1000,
    });
    return {};
  },
  /** Consoles outlive the agent, so this one may be open although the agent ended before it could report that. */
  recover: async ({ taskId, signal, host }) => ((await host.terminals.recover(taskId, signal)) ? {} : undefined),
});
