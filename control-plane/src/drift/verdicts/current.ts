// The verdict on a node beside what is known of its presence at this moment. Presence is exact to the second; a stored
// verdict follows it within a few. Until then nothing is shown that contradicts it.

import type { Layers } from "@holdfast/contracts/endpoints/drift";
import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { StoredCause } from "./stored.ts";

export type CurrentVerdict = {
  /** Worst first. */
  causes: readonly StoredCause[];
  userState: UserState;
  layers: Layers;
  /** The verdict takes the node for one that reports. */
  reporting: boolean;
  /** The node went offline or came back since. */
  pending: boolean;
};

type Stored = Omit<CurrentVerdict, "pending">;

/** Undefined: there is none yet. */
export function currentVerdict(stored: Stored | undefined, { online }: { online: boolean }): CurrentVerdict {
  if (!stored) return { ...unknown, pending: false };
  if (stored.reporting === online) return { ...stored, pending: false };
  const { causes, layers } = stored;
  if (!online) return { ...stored, layers: { ...layers, management: notWorking(layers) }, pending: true };
  // It reports: that it does not is no longer true, and whether the rest is was not looked at yet.
  const left = causes.filter(({ signal }) => signal !== SILENCE);
  const management = left.length === 0 ? "unknown" : layers.management;
  return { ...stored, causes: left, layers: { ...layers, management }, pending: true };
}

const SILENCE = "node_agent_heartbeat_stale";

const notWorking = ({ management }: Layers) => (management === "working" ? "unknown" : management);

const unknown: Stored = {
  causes: [],
  userState: "normal",
  layers: { management: "unknown", workload: "unknown", access: "unknown" },
  reporting: false,
};
