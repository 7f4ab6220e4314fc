// The changes that an operator can make to a node in its current state, and their effects. The server
// decides; this only keeps the page from offering what the server would reject.

import type { NodeChange } from "@holdfast/contracts/endpoints/nodes";
import type { NodeStatus } from "@holdfast/contracts/node/protocol";

const offered: Record<NodeStatus, readonly NodeChange[]> = {
  enrolling: ["fence", "revoke", "retire"],
  active: ["drain", "fence", "revoke", "retire"],
  draining: ["reactivate", "fence", "revoke", "retire"],
  quarantined: ["reactivate", "revoke", "retire"],
  retired: [],
};

export function offeredChanges(status: NodeStatus, { revoked }: { revoked: boolean }): readonly NodeChange[] {
  if (!revoked) return offered[status];
  return offered[status].filter((change) => change !== "revoke" && change !== "reactivate");
}

type ChangeWords = {
  /** On the menu and the button. */
  action: string;
  /** Put before the node's name. */
  question: string;
  done: string;
  effects: string[];
  danger: boolean;
};

export const changeWords: Record<NodeChange, ChangeWords> = {
  drain: {
    action: "Drain node",
    question: "Drain",
    done: "is draining",
    effects: [
      "It gets no new tasks. Running tasks finish.",
      "Its allocations are kept. Reactivate it to let it get tasks again.",
    ],
    danger: false,
  },
  fence: {
    action: "Quarantine node",
    question: "Quarantine",
    done: "is quarantined",
    effects: [
      "It gets no tasks until you reactivate it.",
      "Running tasks are not stopped. Cancel them if they should be.",
      "Its certificate stays valid. If the machine may be compromised, revoke its identity instead.",
    ],
    danger: true,
  },
  reactivate: {
    action: "Reactivate node",
    question: "Reactivate",
    done: "is active",
    effects: ["It gets tasks again as soon as its agent is online."],
    danger: false,
  },
  revoke: {
    action: "Revoke identity",
    question: "Revoke the identity of",
    done: "is revoked",
    effects: [
      "Its certificates are rejected immediately, also on open connections.",
      "To bring it back, create a token for it, enroll it again, then reactivate it.",
    ],
    danger: true,
  },
  retire: {
    action: "Retire node",
    question: "Retire",
    done: "is retired",
    effects: [
      "Its identity is revoked. This cannot be undone. Its name can be used again.",
      "Its history is kept. The machine can be enrolled again as a new node.",
    ],
    danger: true,
  },
};
