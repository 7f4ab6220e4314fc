// How an invented host is: as its node describes itself, with a load that follows from it.

import { setTimeout as sleep } from "node:timers/promises";
import { simulation } from "../executor.ts";
import type contract from "./contract.ts";

/** As long as a look at a real host takes. */
const TAKES_MS = 20;

export default simulation<typeof contract>(({ facts, startedAt }) => ({
  async run({ signal }) {
    await sleep(TAKES_MS, undefined, { signal });
    const { memory_bytes: total_bytes, memory_free_bytes: free_bytes } = facts;
    const load = facts.cpus * (1 - free_bytes / total_bytes);
    return {
      kernel: facts.os.kernel,
      uptime_seconds: Math.round((Date.now() - startedAt) / 1000),
      load: [load, load * 0.9, load * 0.8],
      memory: { total_bytes, free_bytes, available_bytes: free_bytes },
      root_disk: facts.disk,
      kvm: { device_present: false, device_opens: false },
      vfio_modules: [],
      iommu_groups: 0,
      gpus: [],
      links: [{ name: "sim0", state: "up", hardware: false, driver: null, speed_mbps: 10_000 }],
      infiniband: [],
    };
  },
}));
