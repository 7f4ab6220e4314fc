// What open pages follow about runs: requests of people, and the progress that the engine makes.

import type { LiveTopic, SignalledTopic } from "../live/topic.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of runs that got new events. Unlike `workflow_run`, it does not wake the engine, which publishes it. */
    workflow_run_progress: true;
  }
}

const runTopic = (signal: SignalledTopic["signal"]): LiveTopic => ({
  topic: "run",
  scope: "workflows:read",
  signal,
  select: (system, ids) => system`
    SELECT id, org_id, NULL::uuid AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM workflow_runs WHERE id = ANY(${ids}::uuid[])`,
});

export const runTopics = [runTopic("workflow_run"), runTopic("workflow_run_progress")];
