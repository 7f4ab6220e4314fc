// A node's status and connection as shape and title.

import type { NodeAgentStatus, NodeConnection } from "@holdfast/contracts/endpoints/nodes";
import type { NodeStatus } from "@holdfast/contracts/node/protocol";
import {
  nodeAgentStatusTitles,
  nodeConnectionTitles,
  nodeStatusTitles,
} from "@holdfast/contracts/words/state-titles";
import { marksOf } from "../../design/values/marks.ts";

export const statusMarks = marksOf<NodeStatus>(nodeStatusTitles, {
  enrolling: "moving",
  active: "ok",
  draining: "degraded",
  quarantined: "failed",
  retired: "ended",
});

export const connectionMarks = marksOf<NodeConnection>(nodeConnectionTitles, {
  online: "ok",
  stale: "degraded",
  offline: "failed",
  never: "unknown",
});

export const nodeAgentStatusMarks = marksOf<NodeAgentStatus>(nodeAgentStatusTitles, {
  healthy: "ok",
  stale: "failed",
  auth_failed: "failed",
  api_unreachable: "failed",
  task_result_failed: "degraded",
  unknown: "unknown",
});
