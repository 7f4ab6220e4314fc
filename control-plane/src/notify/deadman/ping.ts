// The dead-man's switch: a monitor outside is requested after each full round trip through the canary node, and only then. It
// alarms when the requests stop, whatever has stopped them.

import type { Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import type { Sql } from "../../database/connect.ts";
import type { TaskEngine } from "../../tasks/engine.ts";
import { allowanceOf, resolveAllowed } from "../send/addresses.ts";
import { requestOutside } from "../send/request.ts";
import { TIME_LIMIT_MS } from "../send/sender.ts";
import type { notifySettings } from "../settings.ts";
import { findCanary, roundTrip } from "./round-trip.ts";

/** When it last succeeded, in this process; milliseconds since 1970. */
export type Deadman = { roundTripAt?: number; pingedAt?: number };

const LONGEST_WAIT_SECONDS = 20;

type DeadmanSettings = Pick<
  Values<typeof notifySettings>,
  "deadmanUrl" | "deadmanIntervalSeconds" | "deadmanNode"
>;

/** Throws with the reason if the monitor was not requested. */
export async function pingAfterRoundTrip(
  parts: { system: Sql; tasks: TaskEngine; log: Log; deadman: Deadman },
  settings: DeadmanSettings & { staleAfterSeconds: number },
): Promise<{ round_trip_ms: number; pinged: number }> {
  const { deadmanUrl, deadmanIntervalSeconds, deadmanNode, staleAfterSeconds } = settings;
  if (deadmanUrl === undefined) return { round_trip_ms: 0, pinged: 0 };
  const canary = await findCanary(parts.system, { wanted: deadmanNode, staleAfterSeconds });
  const waitMs = Math.min(LONGEST_WAIT_SECONDS, deadmanIntervalSeconds) * 1000;
  const took = await roundTrip(parts, canary, { waitMs });
  parts.deadman.roundTripAt = Date.now();
  const url = new URL(deadmanUrl);
  // The operator of the installation chose the URL.
  const addresses = await resolveAllowed(url, allowanceOf(["0.0.0.0/0", "::/0"]));
  const { delivered, answer } = await requestOutside({
    url,
    addresses,
    method: "GET",
    timeLimitMs: TIME_LIMIT_MS,
  });
  if (!delivered) throw new Error(`the monitor outside answered ${answer}`);
  parts.deadman.pingedAt = Date.now();
  return { round_trip_ms: Math.round(took), pinged: 1 };
}

export function measureDeadman(metrics: Metrics, deadman: Deadman): void {
  const help = "When a round trip through the canary node, and a request to the monitor outside, last succeeded";
  metrics.gaugeByReason("holdfast_deadman_timestamp_seconds", help, async () => ({
    ...(deadman.roundTripAt === undefined ? {} : { round_trip: deadman.roundTripAt / 1000 }),
    ...(deadman.pingedAt === undefined ? {} : { ping: deadman.pingedAt / 1000 }),
  }));
}
