// Whether a recovery token or bundle gives its node a new identity. Pure: the api is the only one who decides, and here is where.

import type { ErrorCode } from "@holdfast/contracts/errors";
import type { Position } from "../nodes/directory/state.ts";

/** What is known when a token of this node is presented. */
export type RecoveryFacts = {
  node: {
    position: Position;
    /** An agent is connected as this node. */
    connected: boolean;
    /** Two machines were seen with its identity, and nobody has decided between them yet. */
    cloned: boolean;
  };
  token: {
    /** Issued for the environment that the agent and this server are in. */
    ofProfile: boolean;
    expired: boolean;
    revoked: boolean;
    /** The node has shown or used a newer one. */
    superseded: boolean;
    usedBy: "nobody" | "this_key" | "another_key";
  };
  /** `node.automatic_recovery`. */
  automatic: boolean;
};

/** What is known when a bundle of this node is presented. An operator decided that it shall come back, connected or not. */
export type BundleFacts = {
  node: Pick<RecoveryFacts["node"], "position" | "cloned">;
  bundle: Pick<RecoveryFacts["token"], "expired" | "revoked" | "usedBy">;
};

export type RecoveryDecision =
  | { accept: "first" }
  /** The same key again: its response was lost. */
  | { accept: "again" }
  | { refuse: ErrorCode };

/** What operators decided about the node comes first: neither a token nor a bundle changes that. */
function decidedByOperators({ position, cloned }: BundleFacts["node"]): ErrorCode | undefined {
  if (position === "retired") return "node_retired";
  if (position === "revoked") return "identity_revoked";
  return position === "quarantined" || cloned ? "node_quarantined" : undefined;
}

export function decideRecovery({ node, token, automatic }: RecoveryFacts): RecoveryDecision {
  const decided = decidedByOperators(node);
  if (decided) return { refuse: decided };
  if (!automatic) return { refuse: "recovery_disabled" };
  if (token.revoked) return { refuse: "recovery_token_revoked" };
  if (!token.ofProfile) return { refuse: "recovery_profile_mismatch" };
  if (token.expired) return { refuse: "recovery_token_expired" };
  if (token.superseded) return { refuse: "recovery_token_superseded" };
  if (token.usedBy === "another_key") return { refuse: "recovery_token_used" };
  if (token.usedBy === "this_key") return { accept: "again" };
  // Whoever holds a stolen token has to wait until the node itself is gone; a node whose old connection is half open, too.
  return node.connected ? { refuse: "recovery_not_needed" } : { accept: "first" };
}

export function decideBundle({ node, bundle }: BundleFacts): RecoveryDecision {
  const decided = decidedByOperators(node);
  if (decided) return { refuse: decided };
  if (bundle.revoked) return { refuse: "bundle_revoked" };
  if (bundle.usedBy === "another_key") return { refuse: "bundle_used" };
  if (bundle.expired) return { refuse: "bundle_expired" };
  return { accept: bundle.usedBy === "this_key" ? "again" : "first" };
}
