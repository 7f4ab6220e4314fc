// What the fleet's pages say about common causes. Pure. Which nodes have one, and which one it is, was decided when incidents were
// compared (`drift/common-cause/find.ts`): nothing is decided here.

import type { Fleet, Trouble } from "@holdfast/contracts/endpoints/fleet";
import type { OrgIncident } from "../drift/common-cause/of-organization.ts";
import { presentShared } from "../drift/common-cause/words.ts";
import type { StoredCause } from "../drift/verdicts/stored.ts";
import type { FleetNode } from "./node.ts";

const sentenceOf = (incident: OrgIncident) =>
  presentShared({ ...incident, nodes: incident.node_ids.size, closed_at: null }, "your nodes").sentence;

const byNodes = (a: OrgIncident, b: OrgIncident) => b.node_ids.size - a.node_ids.size || (a.id < b.id ? -1 : 1);

/** Those that nothing tells from the rest of the fleet. The control plane is suspected first. */
function isOfWholeFleet({ attribute }: OrgIncident): boolean {
  return attribute === "control_plane" || attribute === "fleet";
}

/** `nodeApiUrl`: where agents reach the node-facing listener. */
export function ownSideOf(
  incidents: readonly OrgIncident[],
  { nodeApiUrl }: { nodeApiUrl: string },
): Fleet["own_side"] {
  const rank = ({ attribute }: OrgIncident) => (attribute === "control_plane" ? 0 : 1);
  const [worst] = incidents.filter(isOfWholeFleet).sort((a, b) => rank(a) - rank(b) || byNodes(a, b));
  if (!worst) return null;
  return {
    incident_id: worst.id,
    message: sentenceOf(worst),
    next_step: nextStepOf(worst, nodeApiUrl),
  };
}

function nextStepOf({ id, attribute, reason }: OrgIncident, nodeApiUrl: string): string {
  if (attribute === "control_plane") {
    return `Do not quarantine, drain or reboot nodes. Run \`holdfast status\` on the server; then check, from outside, the address that agents connect to, ${nodeApiUrl}: its name, its route, its certificate, and the ingress in front of it.`;
  }
  if (reason === "clock_skew") {
    return "Check the time on the server first (`timedatectl`); leave the nodes' clocks alone until then.";
  }
  return `Look for what changed for all nodes at that time before you repair single ones: \`holdfast incident show ${id}\`.`;
}

/** `having`: the nodes with the trouble, and the cause of each. */
export function commonOf(
  having: readonly { node: Pick<FleetNode, "id">; cause: Pick<StoredCause, "reason"> }[],
  incidents: readonly OrgIncident[],
): Trouble["common"] {
  return incidents
    .filter((incident) => !isOfWholeFleet(incident))
    .sort(byNodes)
    .flatMap((incident) => {
      const { id, attribute, value, reason, node_ids } = incident;
      const count = having.filter(({ node, cause }) => cause.reason === reason && node_ids.has(node.id)).length;
      if (count === 0) return [];
      return [{ incident_id: id, attribute, value, count, sentence: sentenceOf(incident) }];
    });
}
