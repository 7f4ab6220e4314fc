// What a gateway receives about a terminal: its owner, its node and its limits.

import type { TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { Values } from "@holdfast/kit/settings";
import type { Claimed, SessionRow } from "./queries.ts";
import type { terminalSettings } from "./settings.ts";

export type TerminalLimits = Values<typeof terminalSettings>;

const limitsOf = (limits: TerminalLimits): Pick<TerminalGrant, "deadline_seconds" | "limits"> => ({
  deadline_seconds: limits.terminalOpenSeconds,
  limits: {
    idle_seconds: limits.terminalIdleSeconds,
    detached_seconds: limits.terminalDetachedSeconds,
    longest_seconds: limits.terminalLongestSeconds,
    per_user: limits.terminalsPerUser,
    per_node: limits.terminalsPerNode,
  },
});

export function grantOfToken(claimed: Claimed, limits: TerminalLimits): TerminalGrant {
  return {
    session_id: claimed.id,
    org_id: claimed.org_id,
    allocation_id: claimed.allocation_id,
    node_id: claimed.node_id,
    user_key: claimed.user_key,
    correlation_id: claimed.correlation_id,
    purpose: claimed.purpose,
    offset: claimed.from_offset === null ? null : Number(claimed.from_offset),
    asked_at: claimed.asked_at.toISOString(),
    elsewhere: { of_user: claimed.of_user, on_node: claimed.on_node },
    ...limitsOf(limits),
  };
}

/** For a gateway that did not claim the terminal's token. */
export function grantOfSession(session: SessionRow, limits: TerminalLimits): TerminalGrant {
  return {
    session_id: session.id,
    org_id: session.org_id,
    allocation_id: session.allocation_id,
    node_id: session.node_id,
    user_key: session.user_key,
    correlation_id: session.correlation_id,
    purpose: session.state === "opening" ? "open" : "attach",
    offset: null,
    asked_at: session.created_at.toISOString(),
    // Only an opening is limited.
    elsewhere: { of_user: 0, on_node: 0 },
    ...limitsOf(limits),
  };
}
