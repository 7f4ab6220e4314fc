// Whether the control plane is the likely cause of a problem that most of the fleet has. Machines fail one by one, or by
// the rack; when most of them have the same problem at once, the server or the network in front of it is the cause. Pure.

import type { Fleet } from "@holdfast/contracts/endpoints/fleet";
import type { FleetNode } from "./node.ts";

/** In a smaller fleet, half of the nodes may fail by chance. */
const LEAST_NODES = 5;
const MOST_OF_THEM = 0.5;
/** Two and a half heartbeat intervals. Nine of ten nodes that went offline together sent their last heartbeat within it. */
const AT_ONCE_MS = 50_000;
const OF_TOGETHER = 0.9;

/** `nodeApiUrl`: where agents reach the node-facing listener. */
export function suspectControlPlane(
  nodes: readonly FleetNode[],
  { nodeApiUrl }: { nodeApiUrl: string },
): Fleet["own_side"] {
  const expected = nodes.filter(({ state }) => state !== "fenced" && state !== "joining");
  if (expected.length < LEAST_NODES) return null;
  const together = countOfflineTogether(expected);
  if (together >= expected.length * MOST_OF_THEM) {
    return {
      message: `${together} of ${expected.length} nodes went offline at the same time. The likely cause is the control plane or the network in front of it, not the nodes.`,
      next_step: `Do not quarantine, drain or reboot nodes. Run \`holdfast status\` on the server; then check, from outside, the address that agents connect to, ${nodeApiUrl}: its name, its route, its certificate, and the ingress in front of it.`,
    };
  }
  const skewed = having(expected, "clock_skew");
  if (skewed >= expected.length * MOST_OF_THEM) {
    return {
      message: `The clocks of ${skewed} of ${expected.length} nodes differ from the server's. More likely the server's own clock is wrong.`,
      next_step: "Check the time on the server first (`timedatectl`); leave the nodes' clocks alone until then.",
    };
  }
  const late = having(expected, "cert_renewal_overdue") + having(expected, "cert_expired");
  if (late >= expected.length * MOST_OF_THEM) {
    return {
      message: `${late} of ${expected.length} nodes could not renew their certificate in time. The likely cause is the control plane, which issues all certificates.`,
      next_step: "Run `holdfast status` on the server, and look for refused renewals in the log of the api.",
    };
  }
  return null;
}

function having(nodes: readonly FleetNode[], code: string): number {
  return nodes.filter(({ causes }) => causes.some(({ reason }) => reason === code)).length;
}

/** The largest number of nodes whose last heartbeats fall into one window; all offline nodes if that is nearly all. */
function countOfflineTogether(nodes: readonly FleetNode[]): number {
  const times = nodes.flatMap(({ silentAt }) => silentAt ?? []).sort((a, b) => a - b);
  let most = 0;
  let from = 0;
  times.forEach((time, index) => {
    while (time - (times[from] ?? time) > AT_ONCE_MS) from += 1;
    most = Math.max(most, index - from + 1);
  });
  return most >= times.length * OF_TOGETHER ? times.length : most;
}
