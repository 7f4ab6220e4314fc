// Which problems of several nodes have one cause: nodes with the same reason that began at about the same time and share an
// attribute. A pure and total function that does not depend on any order. The control plane is suspected first, because
// machines do not fail together by themselves.

import { nodeAttributes, type SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import { isReason, type ReasonCode, reasons } from "@holdfast/contracts/reasons/catalogue";
import type { CommonCausePolicy } from "../policy.ts";
import type { Attributes } from "./attributes.ts";

export type RelatedNode = {
  id: string;
  /** Of its worst cause, and since when; null: healthy. */
  reason: string | null;
  since: number;
  attributes: Attributes;
};

/** When no api ran; `to` is null while none does. */
export type Outage = { from: number; to: number | null };

/** `value`: empty for `fleet` and `control_plane`. */
export type CauseKey = { reason: string; attribute: SharedAttribute; value: string };
export const keyOf = ({ reason, attribute, value }: CauseKey) => JSON.stringify([reason, attribute, value]);

export type CommonCause = CauseKey & {
  /** When the first of its nodes began, as it was found first. */
  since: number;
  /** Because of which the control plane is suspected; null: because of the number of nodes. */
  outage: Outage | null;
  /** Sorted ids. */
  nodes: readonly string[];
};
/** One that was found before and is not over. */
export type OpenCause = Omit<CommonCause, "nodes">;

export type Known = {
  open: readonly OpenCause[];
  outages: readonly Outage[];
  policy: CommonCausePolicy;
  now: number;
};

/** `nodes`: all that are expected to report, healthy ones too. A node has at most one common cause. */
export function findCommonCauses(nodes: readonly RelatedNode[], known: Known): CommonCause[] {
  const affected = nodes.filter(isAffected).sort(byTime);
  const suspicion = suspectControlPlane(affected, nodes.length, known);
  const explained = new Set(suspicion?.nodes);
  const left = affected.filter(({ id }) => !explained.has(id));
  const fleet: Fleet = {
    size: nodes.length,
    sharing: countValues(nodes),
    open: new Map(known.open.map((one) => [keyOf(one), one])),
  };
  const named = [...Map.groupBy(left, ({ reason }) => reason)].flatMap(([reason, having]) =>
    choose(candidatesOf(reason, having, fleet, known.policy), known.policy),
  );
  return [...(suspicion ? [suspicion] : []), ...named].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

type Affected = RelatedNode & { reason: string };
const isAffected = (node: RelatedNode): node is Affected => node.reason !== null;
const byTime = (a: RelatedNode, b: RelatedNode) => a.since - b.since || (a.id < b.id ? -1 : 1);
const idsOf = (nodes: readonly RelatedNode[]) => nodes.map(({ id }) => id).sort();

const SUSPECTED: ReasonCode = "control_plane_unreachable";

/** Whether the catalogue explains it by a control plane that nodes cannot reach. */
function isSymptom({ reason }: Affected): boolean {
  return reason === SUSPECTED || (isReason(reason) && reasons[reason].dependsOn.includes(SUSPECTED));
}

function suspectControlPlane(
  affected: readonly Affected[],
  fleetSize: number,
  { open, outages, policy, now }: Known,
): CommonCause | undefined {
  const symptoms = affected.filter(isSymptom);
  const before = open.find(({ attribute }) => attribute === "control_plane");
  // What rests on an outage is over when the nodes should be back. What rests on their number goes on until few are left.
  const goesOn = before !== undefined && before.outage === null;
  const alike = goesOn
    ? since(symptoms, before.since - policy.atOnceMs)
    : largestWindow(symptoms, policy.atOnceMs);
  const enough = goesOn ? alike.length >= policy.leastNodes : isMost(alike.length, fleetSize, policy);
  const recent = outages
    .filter(({ from, to }) => (to ?? now) - from >= policy.leastOutageMs)
    .filter(({ to }) => to === null || now < to + policy.returnAfterOutageMs)
    .sort((a, b) => b.from - a.from || (b.to ?? now) - (a.to ?? now));
  const isIn = ({ from, to }: Outage, node: Affected) =>
    node.since >= from - policy.aroundOutageMs && node.since <= (to ?? now) + policy.aroundOutageMs;
  const returning = symptoms.filter((node) => recent.some((outage) => isIn(outage, node)));
  const members = [...new Set([...(enough ? alike : []), ...returning])].sort(byTime);
  const [first] = members;
  if (!first) return undefined;
  return {
    ...{ reason: SUSPECTED, attribute: "control_plane", value: "" },
    since: before?.since ?? first.since,
    outage: recent.find((outage) => returning.some((node) => isIn(outage, node))) ?? null,
    nodes: idsOf(members),
  };
}

const since = (nodes: readonly Affected[], from: number) => nodes.filter((node) => node.since >= from);
const isMost = (count: number, fleetSize: number, { leastOfFleet, mostOfFleet }: CommonCausePolicy) =>
  count >= leastOfFleet && count > fleetSize * mostOfFleet;

/** The most of them that began within one window; of several such windows the first. `nodes` are in order of time. */
function largestWindow(nodes: readonly Affected[], windowMs: number): readonly Affected[] {
  let best: readonly [number, number] = [0, 0];
  let from = 0;
  nodes.forEach((node, index) => {
    while (node.since - (nodes[from]?.since ?? node.since) > windowMs) from += 1;
    if (index + 1 - from > best[1] - best[0]) best = [from, index + 1];
  });
  return nodes.slice(...best);
}

type Values = ReadonlyMap<string, number>;

/** How many nodes share each value of each attribute. */
function countValues(nodes: readonly RelatedNode[]): ReadonlyMap<SharedAttribute, Values> {
  return new Map(
    nodeAttributes.map((attribute) => {
      const counts = new Map<string, number>();
      for (const { attributes } of nodes) {
        const value = attributes[attribute];
        if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      return [attribute, counts];
    }),
  );
}

type Fleet = {
  size: number;
  sharing: ReadonlyMap<SharedAttribute, Values>;
  /** By their key. */
  open: ReadonlyMap<string, OpenCause>;
};
type Candidate = OpenCause & { members: readonly Affected[]; isOpen: boolean; sharing: number; rank: number };

function candidatesOf(
  reason: string,
  having: readonly Affected[],
  fleet: Fleet,
  policy: CommonCausePolicy,
): Candidate[] {
  const found: Candidate[] = [];
  const add = (key: CauseKey, nodes: readonly Affected[], sharing: number, rank: number) => {
    const before = fleet.open.get(keyOf(key));
    const members = before
      ? since(nodes, before.since - policy.beganWithinMs)
      : largestWindow(nodes, policy.beganWithinMs);
    const [first] = members;
    if (!first) return;
    const isOpen = before !== undefined;
    found.push({ ...key, since: before?.since ?? first.since, outage: null, members, isOpen, sharing, rank });
  };
  nodeAttributes.forEach((attribute, rank) => {
    for (const [value, nodes] of Map.groupBy(having, ({ attributes }) => attributes[attribute])) {
      const sharing = value === undefined ? undefined : fleet.sharing.get(attribute)?.get(value);
      // What all nodes share tells none of them from the others.
      if (value === undefined || sharing === undefined || sharing === fleet.size) continue;
      add({ reason, attribute, value }, nodes, sharing, rank);
    }
  });
  add({ reason, attribute: "fleet", value: "" }, having, fleet.size, nodeAttributes.length);
  return found;
}

/** What explains most nodes goes first; of those that explain as many, what fewer other nodes share. */
function choose(candidates: readonly Candidate[], policy: CommonCausePolicy): CommonCause[] {
  const taken = new Set<string>();
  return candidates.toSorted(byCoverage).flatMap(({ members, isOpen, sharing, rank: _, ...cause }) => {
    const free = members.filter(({ id }) => !taken.has(id));
    if (!suffices({ count: free.length, isOpen, sharing }, policy)) return [];
    for (const { id } of free) taken.add(id);
    return [{ ...cause, nodes: idsOf(free) }];
  });
}

/** The fleet is what all nodes share. */
function suffices(
  { count, isOpen, sharing }: { count: number; isOpen: boolean; sharing: number },
  { leastNodes, shareOfAttribute }: CommonCausePolicy,
): boolean {
  return count >= leastNodes && (isOpen || count >= sharing * shareOfAttribute);
}

function byCoverage(a: Candidate, b: Candidate): number {
  return (
    b.members.length - a.members.length ||
    Number(b.isOpen) - Number(a.isOpen) ||
    a.sharing - b.sharing ||
    a.rank - b.rank ||
    (a.value < b.value ? -1 : 1)
  );
}
