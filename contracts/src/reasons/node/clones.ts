// What only the control plane can notice: that more than one host uses a node's identity.

import type { NodeReason } from "../vocabulary.ts";

export const cloneReasons = {
  cloned_identity_detected: {
    title: "Two hosts with one identity",
    at: "identity",
    signal: null,
    message: "Two machines run with this node's identity at the same time: a host was copied.",
    nextStep:
      "See both machines with `holdfast node explain <id>`, decide with `holdfast node resolve-clone <id> --keep <holder>`, and reimage the other one.",
    class: "security",
    owner: "security",
    severity: "P0",
    userState: "security_action_required",
    nextAction: "reimage",
    dependsOn: [],
  },
} as const satisfies Record<string, NodeReason>;
