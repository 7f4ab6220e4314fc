// Canaries as a metric, for alarms.

import type { Metrics } from "@holdfast/service/metrics";
import type { Sql } from "../../database/connect.ts";
import { judgeWays, wayStates } from "./decide.ts";
import { readKnown } from "./store.ts";

export function measureIngressTrust(metrics: Metrics, system: Sql): void {
  const read = async () => {
    const { ways, now } = await readKnown(system);
    const judged = judgeWays(ways, now);
    return new Map(wayStates.map((state) => [state, judged.filter((way) => way.state === state).length]));
  };
  metrics.gaugesBy("state", read, {
    holdfast_node_api_canaries: {
      help: "Addresses of the node-facing listeners by what the last canary certificate met there",
      of: (count: number) => count,
    },
  });
}
