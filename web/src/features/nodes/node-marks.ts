// A node's status and connection as shape and word.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import type { NodeStatus } from "@holdfast/contracts/node-protocol";
import type { State } from "../../design/StatusMark.tsx";

type Mark = { state: State; word: string };

export const statusMarks: Record<NodeStatus, Mark & { meaning: string }> = {
  enrolling: { state: "moving", word: "Enrolling", meaning: "It has its certificate and was not heard yet." },
  active: { state: "ok", word: "Active", meaning: "It takes tasks." },
  draining: { state: "degraded", word: "Draining", meaning: "It ends what it runs and takes no new tasks." },
  quarantined: { state: "failed", word: "Quarantined", meaning: "It gets no tasks until it is reactivated." },
  retired: { state: "ended", word: "Retired", meaning: "It is gone for good." },
};

export const connectionMarks: Record<Node["connection"], Mark> = {
  online: { state: "ok", word: "Online" },
  stale: { state: "failed", word: "Offline" },
  never: { state: "unknown", word: "Never seen" },
};
