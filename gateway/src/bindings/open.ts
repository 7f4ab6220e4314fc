// Opens the bindings of this gateway: in Redis if there is one, otherwise in memory.

import type { Metrics } from "@holdfast/service/metrics";
import { type Bindings, memoryBindings } from "./bindings.ts";
import type { RedisBindingsOptions } from "./redis.ts";

export async function openBindings(
  redisUrl: string | undefined,
  options: Omit<RedisBindingsOptions, "url"> & { metrics: Metrics },
): Promise<Bindings> {
  if (redisUrl === undefined) return memoryBindings(options.self);
  // The library is loaded only where it is used.
  const { redisBindings } = await import("./redis.ts");
  const bindings = redisBindings({ ...options, url: redisUrl });
  options.metrics.gaugeByReason(
    "holdfast_gateway_store_reachable",
    "Whether the store of bindings responds: 1 or 0",
    async () => ({ redis: bindings.isReachable() ? 1 : 0 }),
  );
  return bindings;
}
