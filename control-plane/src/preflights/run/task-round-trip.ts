// Whether the node takes a task that does nothing, and its result arrives.

import { type Check, failed, passed } from "./means.ts";
import { isServerAway, wordsOf } from "./node-checks.ts";
import { runTask } from "./run-task.ts";

export const taskRoundTrip: Check = async (means, found, signal) => {
  try {
    const params = { echo: "preflight" };
    const task = await runTask(means, { type: "node.noop", params }, signal);
    if (task.status === "completed") return passed("node", `task ${task.id} completed`);
    const detail = `task ${task.id} is ${task.status}${task.failure ? `: ${task.failure.message}` : ""}`;
    const claimed = task.generation > 0;
    return failed("control_plane", claimed ? "node_task_result_post_failed" : "node_task_claim_failed", detail);
  } catch (error) {
    if (isServerAway(error)) return failed("control_plane", "control_plane_unreachable", wordsOf(error));
    if (found.node?.status === "quarantined") return failed("control_plane", "node_quarantined", wordsOf(error));
    return failed("control_plane", "node_task_claim_failed", wordsOf(error));
  }
};
