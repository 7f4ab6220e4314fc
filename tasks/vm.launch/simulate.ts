// A VM that exists in memory only. Its guest connects a moment later.

import { simulation, TaskFailed } from "../executor.ts";
import { simulatedVms } from "../vms/simulated.ts";
import type contract from "./contract.ts";

export default simulation<typeof contract>((node) => ({
  async run({ params, progress }) {
    for (const phase of ["checking", "cloud_init", "overlay", "network", "qemu", "uplink"]) progress(phase);
    const launched = simulatedVms(node).launch(params);
    if ("refused" in launched) throw new TaskFailed(launched.refused);
    return launched;
  },
}));
