// What tenants see of nodes and the fleet. They need to find a node and to know whether it is there; why it is as it is, what
// others do on it and how many they are is for its operators. The one place that decides it.

import type { Fleet } from "@holdfast/contracts/endpoints/fleet";
import type { Node, NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { ApiError } from "@holdfast/contracts/errors";
import type { ActingRole, Scope } from "@holdfast/contracts/public/permissions";
import type { FleetNode } from "../../fleet/node.ts";
import { type Actor, holdsScope } from "../../people/actor.ts";

const NEEDED: Scope = "nodes:diagnose";

export function seesReasons({ actor, org }: { actor: Actor; org: { role: ActingRole } }): boolean {
  return holdsScope(actor, org.role, NEEDED);
}

/** A search for nodes with a reason would tell which ones have it. */
export function refuseSearchByReason(seesThem: boolean, { attention }: { attention?: string | undefined }): void {
  if (seesThem || attention === undefined) return;
  throw new ApiError("forbidden", {
    message: "Only operators of nodes can search for them by reason.",
    nextStep: "Leave out `attention`.",
    details: { needed: NEEDED },
  });
}

export function nodeForTenant<N extends Node>(node: N): N {
  return {
    ...node,
    ...{ status_reason: null, running_tasks: null, attention: [], cause_pending: false },
    ...{ agent_status: null, user_state: null, layers: null },
  };
}

export function nodeDetailForTenant(node: NodeDetail): NodeDetail {
  return {
    ...nodeForTenant(node),
    ...{ instance_id: null, boot_id: null, agent_started_at: null, link: null, link_since: null },
    ...{ clock_skew_seconds: null, unsent_results: null, certificate: null, recovery_token: null, profile: null },
    ...{ setup: null, address: null, provider: null, network_side: null },
  };
}

/** The order of a list would tell which node is worse off. */
export function rankedForTenant<N extends Pick<FleetNode, "severity" | "since">>(node: N): N {
  return { ...node, severity: null, since: null };
}

/**
 * Incidents are for operators: their ids would lead a tenant nowhere, and tell whose tasks had one. The check of a recovery
 * is recorded under that of its incident.
 */
export function taskForTenant(task: Task): Task {
  const { correlation_id, incident_id, id } = task;
  return { ...task, incident_id: null, correlation_id: correlation_id === incident_id ? id : correlation_id };
}

export function fleetForTenant(fleet: Fleet): Fleet {
  return { ...fleet, troubles: [], own_side: null, brake: null };
}
