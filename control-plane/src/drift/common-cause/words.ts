// What is said about nodes with one cause.

import type { NodeAttribute, Shared, SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { DIRECT } from "./attributes.ts";

export type Spoken = {
  attribute: SharedAttribute;
  value: string;
  /** Of those whom the reader may see. */
  nodes: number;
  began_at: Date;
  closed_at: Date | null;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
};

/** `whose`: "your nodes" to an organization, "all nodes" to the operator of the installation. */
export function presentShared(spoken: Spoken, whose: string): Shared {
  const { attribute, value } = spoken;
  return {
    ...{ attribute, value: value === "" ? null : value, suspected: attribute === "control_plane" },
    sentence: sentenceOf(spoken, whose),
  };
}

/** The catalogue's title, unless that claims what is only suspected. */
export function titleOfCause({
  reason,
  attribute,
}: {
  reason: string;
  attribute: SharedAttribute | null;
}): string {
  return attribute === "control_plane" ? "Control plane suspected" : titleOf(reason);
}

function sentenceOf({ attribute, value, nodes, began_at, closed_at, ...outage }: Spoken, whose: string): string {
  const some = `${nodes} of ${whose}`;
  const one = nodes === 1;
  if (attribute === "control_plane") {
    const why = outage.outage_began_at
      ? downFor(outage.outage_began_at, outage.outage_ended_at)
      : "Most nodes of this installation went offline at the same time.";
    const are = closed_at ? (one ? "was" : "were") : one ? "is" : "are";
    return `${why} The control plane or the network in front of it is suspected, not the nodes. ${some} ${are} affected.`;
  }
  const have = closed_at ? "had" : one ? "has" : "have";
  const until = closed_at ? `from ${minute(began_at)} to ${minute(closed_at)}` : `since ${minute(began_at)}`;
  if (attribute === "fleet") {
    return `At least half of the nodes of this installation had the same problem at once. ${some} ${have} it ${until}.`;
  }
  return `${some} ${phrases[attribute](value)} ${have} the same problem ${until}.`;
}

const phrases: Record<NodeAttribute, (value: string) => string> = {
  ingress: (value) => (value === DIRECT ? "without an ingress in front" : `behind ingress ${value}`),
  profile: (value) => `with profile ${value}`,
  ca: (value) => `with certificates of the CA ${value}`,
  agent_version: (value) => `with agent version ${value}`,
  subnet: (value) => `in subnet ${value}`,
  provider: (value) => `at provider ${value}`,
  network_side: (value) => `on network side ${value}`,
};

function downFor(from: Date, to: Date | null): string {
  return to
    ? `The control plane was down from ${minute(from)} to ${minute(to)}.`
    : `The control plane is down since ${minute(from)}.`;
}

const minute = (at: Date) => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
