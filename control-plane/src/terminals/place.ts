// The allocation or the VM that a terminal is opened at, with its node, and why it cannot be opened there.

import type { AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import type { LeaseState } from "@holdfast/contracts/endpoints/leases";
import type { NodeStatus } from "@holdfast/contracts/node/protocol";
import type { TerminalOwner } from "@holdfast/contracts/reasons/owners";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import type { Tx } from "../database/connect.ts";

export type Place = {
  id: string;
  status: AllocationStatus;
  username: string;
  own_account: boolean;
  node_id: string;
  node_name: string;
  node_status: NodeStatus;
  node_revoked: boolean;
};

export async function selectPlace(tx: Tx, allocationId: string): Promise<Place | undefined> {
  const [row] = await tx<Place[]>`
    SELECT a.id, a.status, a.username, a.own_account, a.node_id, n.name AS node_name, n.status AS node_status,
      n.revoked_at IS NOT NULL AS node_revoked
    FROM allocations a JOIN nodes n ON n.id = a.node_id WHERE a.id = ${allocationId}`;
  return row;
}

/** `owner`: who can resolve it. */
export type Refusal = { reason: string; owner: TerminalOwner; message: string; nextStep: string };

const inactive: Record<Exclude<AllocationStatus, "active">, Omit<Refusal, "reason" | "owner">> = {
  requested: {
    message: "The allocation's user is still being created on the node.",
    nextStep: "Wait until the allocation is active, then try again.",
  },
  releasing: {
    message: "The allocation is being released: its user is removed from the node.",
    nextStep: "Create a new allocation.",
  },
  released: {
    message: "The allocation was released, and its user removed from the node.",
    nextStep: "Create a new allocation.",
  },
  failed: {
    message: "The allocation failed: it has no user to open a terminal for.",
    nextStep: "The allocation's page shows why. Release it and create a new one.",
  },
};

/** Undefined if the terminal may be opened. An open shell may be used while its node drains. */
export function refusalOf(place: Place, purpose: "open" | "attach"): Refusal | undefined {
  if (place.status !== "active")
    return { reason: `allocation_${place.status}`, owner: "tenant", ...inactive[place.status] };
  return nodeRefusalOf(place, purpose);
}

type PlaceOfNode = Pick<Place, "node_name" | "node_status" | "node_revoked">;

function nodeRefusalOf(place: PlaceOfNode, purpose: "open" | "attach"): Refusal | undefined {
  const draining = place.node_status === "draining" && purpose === "attach";
  if (!place.node_revoked && (place.node_status === "active" || draining)) return undefined;
  const state = place.node_revoked ? "revoked" : place.node_status;
  return {
    reason: `node_${state}`,
    owner: "node",
    message: `The node ${place.node_name} is ${state} and takes no new work.`,
    nextStep: "Contact the operator of the node. The node's page shows the reason and the time.",
  };
}

export type ConsolePlace = PlaceOfNode & { id: string; status: LeaseState; node_id: string | null };

export async function selectConsolePlace(tx: Tx, leaseId: string): Promise<ConsolePlace | undefined> {
  const [row] = await tx<ConsolePlace[]>`
    SELECT l.id, l.status, l.host_id AS node_id, n.name AS node_name, n.status AS node_status,
      n.revoked_at IS NOT NULL AS node_revoked
    FROM vm_leases l LEFT JOIN nodes n ON n.id = l.host_id WHERE l.id = ${leaseId}`;
  return row;
}

/** A VM that is being removed keeps its consoles until it is gone. */
const withConsole: ReadonlySet<LeaseState> = new Set(["booting", "connected", "running"]);

/** Undefined if the console may be opened. */
export function consoleRefusalOf(place: ConsolePlace, purpose: "open" | "attach"): Refusal | undefined {
  if (withConsole.has(place.status) || (place.status === "terminating" && purpose === "attach"))
    return nodeRefusalOf(place, purpose);
  const waits = place.status === "requested" || place.status === "provisioning";
  return {
    reason: `lease_${place.status}`,
    owner: "tenant",
    message: `The lease has no running VM: ${leaseStateTitles[place.status].title.toLowerCase()}.`,
    nextStep: waits
      ? "Wait until its VM boots, then try again."
      : "Request another VM. The lease's page says how this one ended.",
  };
}
