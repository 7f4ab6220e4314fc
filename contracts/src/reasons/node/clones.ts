// What only the control plane can notice: that more than one host uses a node's identity.

import type { NodeReason } from "../vocabulary.ts";

export const cloneReasons = {
  cloned_identity_detected: {
    title: "Two hosts with one identity",
    at: "identity",
    signal: null,
    message: "Two running agents proved at the same time that they have this node's key: a host was copied.",
    nextStep:
      "Quarantine the node: `holdfast node quarantine <id>`. Find out which host is the copy, wipe it, and enroll it under a new identity.",
    class: "security",
    owner: "security",
    severity: "P0",
    userState: "security_action_required",
    nextAction: "reimage",
    dependsOn: [],
  },
} as const satisfies Record<string, NodeReason>;
