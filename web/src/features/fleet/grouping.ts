// The fleet's nodes in groups: by state, reason, version or address block. Pure.

import { fleetStates, notFineStates } from "@holdfast/contracts/endpoints/fleet";
import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";

export const groupings = ["state", "reason", "version", "block"] as const;
export type Grouping = (typeof groupings)[number];

export type NodeGroup = { key: string; label: string; nodes: PictureNode[]; notFine: number };

/** The maximum number of headings; the smallest groups are combined. */
const MOST_GROUPS = 300;

export function isNotFine({ state }: Pick<PictureNode, "state">): boolean {
  return notFineStates.includes(state);
}

export function groupNodes(nodes: readonly PictureNode[], by: Grouping): NodeGroup[] {
  const groups = new Map<string, NodeGroup>();
  for (const node of nodes) {
    const key = keyOf(node, by);
    let group = groups.get(key);
    if (!group) {
      group = { key, label: labelOf(key, by), nodes: [], notFine: 0 };
      groups.set(key, group);
    }
    group.nodes.push(node);
    if (isNotFine(node)) group.notFine += 1;
  }
  return together([...groups.values()].sort(orders[by]));
}

function keyOf(node: PictureNode, by: Grouping): string {
  if (by === "reason" && isNotFine(node) && node.reason === null) return PENDING;
  return (by === "reason" && !isNotFine(node) ? null : node[by]) ?? "";
}

/** Unhealthy nodes whose cause is not classified yet. No code has a space. */
const PENDING = "being determined";

const withoutAny: Record<Grouping, string> = {
  state: "",
  reason: "No problem",
  version: "Version unknown",
  block: "Address unknown",
};

function labelOf(key: string, by: Grouping): string {
  if (key === "") return withoutAny[by];
  if (by === "state") return fleetStateTitles[key as PictureNode["state"]].title;
  if (by === "reason") return key === PENDING ? "Cause being determined" : titleOf(key);
  return by === "version" ? `Agent ${key}` : key;
}

type Order = (a: NodeGroup, b: NodeGroup) => number;
const larger: Order = (a, b) => b.nodes.length - a.nodes.length || (a.key < b.key ? -1 : 1);
const stateOrder: readonly string[] = fleetStates;
const orders: Record<Grouping, Order> = {
  state: (a, b) => stateOrder.indexOf(a.key) - stateOrder.indexOf(b.key),
  // Nodes without a problem come last, however many there are.
  reason: (a, b) => Number(a.key === "") - Number(b.key === "") || larger(a, b),
  version: larger,
  block: (a, b) => b.notFine / b.nodes.length - a.notFine / a.nodes.length || byNumbers.compare(a.key, b.key),
};
const byNumbers = new Intl.Collator("en", { numeric: true });

function together(groups: NodeGroup[]): NodeGroup[] {
  if (groups.length <= MOST_GROUPS) return groups;
  const others = groups.slice(MOST_GROUPS - 1);
  return [
    ...groups.slice(0, MOST_GROUPS - 1),
    {
      key: "others",
      label: `${others.length} others`,
      nodes: others.flatMap(({ nodes }) => nodes),
      notFine: others.reduce((sum, { notFine }) => sum + notFine, 0),
    },
  ];
}
