// What an operator can do to a node in its present state, and what each of it means. The server
// decides; this only keeps the page from offering what it would refuse.

import type { NodeChange } from "@holdfast/contracts/endpoints/nodes";
import type { NodeStatus } from "@holdfast/contracts/node-protocol";

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
      "It takes no new tasks; what runs there runs to its end.",
      "Its allocations stay. Reactivate it to take work again.",
    ],
    danger: false,
  },
  fence: {
    action: "Quarantine node",
    question: "Quarantine",
    done: "is quarantined",
    effects: [
      "It gets no tasks, and its polls are held without work, until you reactivate it.",
      "What runs there is not stopped: cancel it if it should be.",
      "Its identity stays good: use Revoke if the machine may be in wrong hands.",
    ],
    danger: true,
  },
  reactivate: {
    action: "Reactivate node",
    question: "Reactivate",
    done: "is active",
    effects: ["It gets tasks again as soon as its agent is connected."],
    danger: false,
  },
  revoke: {
    action: "Revoke identity",
    question: "Revoke the identity of",
    done: "is revoked",
    effects: [
      "Its certificates are refused from this moment, also on connections that are open.",
      "To take it in again, make a token for it and join it anew; then reactivate it.",
    ],
    danger: true,
  },
  retire: {
    action: "Retire node",
    question: "Retire",
    done: "is retired",
    effects: [
      "Its identity is revoked and the node never comes back. Its name becomes free.",
      "Its history stays. The machine itself can join again as a new node.",
    ],
    danger: true,
  },
};
