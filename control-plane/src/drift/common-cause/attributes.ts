// The attributes by which nodes with one cause are told from others. Most of them come with each heartbeat and are stored
// beside it, so that reading those of the whole fleet does not parse its heartbeats.

import type { SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import { blockOf } from "../../fleet/node.ts";

export type NodeAttribute = Exclude<SharedAttribute, "fleet" | "control_plane">;
export type Attributes = Readonly<Partial<Record<NodeAttribute, string>>>;

/** Of those that are shared by as many nodes, an earlier one is named. A further attribute is read below. */
export const nodeAttributes = [
  "ingress",
  "profile",
  "ca",
  "agent_version",
  "subnet",
] as const satisfies readonly NodeAttribute[];

/** Those that are stored with a heartbeat. `ingress`: the one that the request came through. */
export function reportedAttributes(
  { facts, profile }: Pick<Heartbeat, "facts" | "profile">,
  ingress: string | null,
): Attributes {
  const subnet = facts.advertised_address === null ? null : blockOf(facts.advertised_address);
  return {
    ingress: ingress ?? DIRECT,
    profile: `${profile.name} version ${profile.version}`,
    agent_version: facts.agent_version,
    ...(subnet === null ? {} : { subnet }),
  };
}

/** No ingress can have this name. */
export const DIRECT = "direct connection";

/** Of a row of the fleet. What operators set for a node goes here, too. */
export type AttributeRow = { reported: Attributes; ca: string | null };

export function attributesOf({ reported, ca }: AttributeRow): Attributes {
  return {
    ...reported,
    ...(ca === null ? {} : { ca }),
  };
}
