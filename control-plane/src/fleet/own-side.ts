// Whether what most of the fleet suffers from is more likely ours than theirs. Machines fail one by one, or by the
// rack; when most of them have the same trouble at once, the server or what stands in front of it is to blame. Pure.

import type { Fleet } from "@holdfast/contracts/endpoints/fleet";
import type { FleetNode } from "./node.ts";

/** Of fewer nodes half is chance. */
const LEAST_NODES = 5;
const MOST_OF_THEM = 0.5;
/** Two heartbeats and a half. Of those that fell silent together, nine of ten were last heard within it. */
const AT_ONCE_MS = 50_000;
const OF_TOGETHER = 0.9;

/** `nodeApiUrl` is where agents reach the node-facing listener. */
export function suspectOurselves(
  nodes: readonly FleetNode[],
  { nodeApiUrl }: { nodeApiUrl: string },
): Fleet["own_side"] {
  const expected = nodes.filter(({ state }) => state !== "fenced" && state !== "joining");
  if (expected.length < LEAST_NODES) return null;
  const together = fellSilentTogether(expected);
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
      message: `${late} of ${expected.length} nodes could not renew their certificate in time. The likely cause is the control plane, which all of them ask.`,
      next_step: "Run `holdfast status` on the server, and look for refused renewals in the log of the api.",
    };
  }
  return null;
}

function having(nodes: readonly FleetNode[], code: string): number {
  return nodes.filter(({ reasons }) => reasons.includes(code)).length;
}

/** The most that were last heard within the same moment, as long as they are nearly all that are silent. */
function fellSilentTogether(nodes: readonly FleetNode[]): number {
  const times = nodes
    .flatMap(({ reason, since }) => (reason === "heartbeat_stale" && since !== null ? since : []))
    .sort((a, b) => a - b);
  let most = 0;
  let from = 0;
  times.forEach((time, index) => {
    while (time - (times[from] ?? time) > AT_ONCE_MS) from += 1;
    most = Math.max(most, index - from + 1);
  });
  return most >= times.length * OF_TOGETHER ? times.length : most;
}
