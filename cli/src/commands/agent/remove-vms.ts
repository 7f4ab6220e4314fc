// holdfast agent remove-vms: what `holdfast agent uninstall` does with the VMs of this host.

import { readSettings } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { printResult } from "../../output.ts";

export function addRemoveVms(agent: Command): void {
  agent
    .command("remove-vms")
    .description("remove all VMs of this host, and everything that belongs to them; the agent must be stopped")
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const [{ joinSettings }, { removeAllVms }] = await Promise.all([
        import("@holdfast/node-agent/settings"),
        import("@holdfast/node-agent/vms/remove-all"),
      ]);
      const { stateDir } = joinSettings;
      const removed = await removeAllVms(readSettings({ stateDir }, process.env).stateDir);
      printResult(options, { removed }, () =>
        removed.length === 0 ? "This host has no VMs." : `Removed ${removed.length} VMs: ${removed.join(", ")}`,
      );
    });
}
