// The work of a node. Expired work is history, never a failed workload.

import type { Rule } from "../rule.ts";

export const taskRules: readonly Rule[] = [
  {
    reason: "node_task_claim_failed",
    signal: "node_task_claim_failed",
    layer: "management",
    when: { task_verification: "failed" },
    confidence: "high",
    alsoInvolves: ["release_packaging"],
    changedBy: "a task that this node accepts",
  },
  {
    reason: "node_task_result_post_failed",
    signal: "node_task_result_post_failed",
    layer: "management",
    when: { result_post: "failed" },
    confidence: "high",
    budget: { repair: "automatic" },
    alsoInvolves: ["environment_networking"],
    changedBy: "a result of this node that arrives",
  },
  {
    reason: "node_task_result_post_failed",
    signal: "node_task_result_post_failed",
    layer: "management",
    when: { heartbeat: "current", dispatched_task: "past_lease" },
    confidence: "medium",
    answer: { owner: "control_plane", nextAction: "replay_task" },
    budget: { repair: "automatic" },
    changedBy: "the result of the task",
  },
  {
    reason: "task_backlog_stale",
    signal: null,
    layer: "management",
    when: { queued_tasks: "past_expiry" },
    confidence: "high",
    budget: { detect: 300, repair: "automatic" },
    changedBy: "a queue without expired tasks",
  },
];
