// The fleet in a few numbers: how many nodes are unhealthy, since when, what they have in common, and whether the control
// plane is the likely cause. Pure.

import {
  type Fleet,
  type FleetFilter,
  type FleetState,
  fleetStates,
  notFineStates,
  type Trouble,
} from "@holdfast/contracts/endpoints/fleet";
import { isReason, presentReason, reasons } from "@holdfast/contracts/reasons/catalogue";
import { severities } from "@holdfast/contracts/reasons/vocabulary";
import type { StoredCause } from "../drift/verdicts/stored.ts";
import { suspectControlPlane } from "./common-cause.ts";
import { matches } from "./filter.ts";
import type { FleetNode } from "./node.ts";

type Share = Trouble["common"][number];
type Attribute = Share["attribute"];

export function summarize(
  all: readonly FleetNode[],
  filter: FleetFilter,
  { at, nodeApiUrl }: { at: Date; nodeApiUrl: string },
): Omit<Fleet, "brake"> {
  const nodes = all.filter((node) => matches(node, filter));
  const states = Object.fromEntries(fleetStates.map((state) => [state, 0])) as Record<FleetState, number>;
  for (const { state } of nodes) states[state] += 1;
  return {
    at: at.toISOString(),
    total: all.length,
    matching: nodes.length,
    not_fine: notFineStates.reduce((sum, state) => sum + states[state], 0),
    states,
    troubles: troublesOf(nodes, all),
    pending: nodes.filter(({ state, causes: found }) => state === "silent" && found.length === 0).length,
    versions: ranking(nodes.flatMap(({ version }) => version ?? [])),
    capabilities: ranking(nodes.flatMap(({ report }) => report?.capabilities ?? [])),
    own_side: suspectControlPlane(all, { nodeApiUrl }),
  };
}

const MOST_RANKED = 50;

function ranking(values: readonly string[]): { value: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, MOST_RANKED);
}

type Having = { node: FleetNode; cause: StoredCause };

function troublesOf(nodes: readonly FleetNode[], all: readonly FleetNode[]): Trouble[] {
  const byCode = new Map<string, Having[]>();
  for (const node of nodes) {
    for (const cause of node.causes) {
      const having = byCode.get(cause.spokenAs);
      if (having) having.push({ node, cause });
      else byCode.set(cause.spokenAs, [{ node, cause }]);
    }
  }
  return [...byCode]
    .map(([code, having]) => troubleOf(code, having, all))
    .sort((a, b) => rankOf(a) - rankOf(b) || b.count - a.count || (a.code < b.code ? -1 : 1));
}

function troubleOf(code: string, having: readonly Having[], all: readonly FleetNode[]): Trouble {
  const began = having.map(({ cause }) => Date.parse(cause.since));
  // Nodes may have it in different degrees; the worst one says how urgent it is.
  const { severity, owner, nextAction, userState } = having.reduce(
    (worst, { cause }) =>
      severities.indexOf(cause.severity) < severities.indexOf(worst.severity) ? cause : worst,
    having[0]?.cause ?? unreachable(code),
  );
  return {
    ...{ code, ...presentReason(code), severity, owner_id: owner, next_action: nextAction, user_state: userState },
    ...wordsOf(code),
    count: having.length,
    first_at: timeOf(began.reduce((a, b) => Math.min(a, b))),
    last_at: timeOf(began.reduce((a, b) => Math.max(a, b))),
    common: commonOf(
      having.map(({ node }) => node),
      all,
    ),
  };
}

const rankOf = ({ severity }: Trouble) => (severity === null ? severities.length : severities.indexOf(severity));

function unreachable(code: string): never {
  throw new Error(`no node has ${code}`);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function wordsOf(code: string): { message: string; next_step: string } {
  if (isReason(code)) return { message: reasons[code].message, next_step: reasons[code].nextStep };
  return {
    message: "The agents report a reason that this server does not know.",
    next_step: "Run `holdfast agent diagnose` on one of the hosts.",
  };
}

/** Fewer may be chance. */
const LEAST_ALIKE = 3;
/** From this part on it is "nearly all". */
const NEARLY_ALL = 0.8;
/** An attribute that the whole fleet shares explains nothing. */
const LEAST_LIFT = 1.5;
const MOST_SHARES = 3;

const attributeOf: Record<Attribute, (node: FleetNode) => string | null | undefined> = {
  version: (node) => node.version,
  block: (node) => node.block,
  system: (node) => node.report?.system,
};

/** Attributes that nearly all of them share, or whose nodes are nearly all among them. */
function commonOf(having: readonly FleetNode[], all: readonly FleetNode[]): Share[] {
  if (having.length < LEAST_ALIKE || having.length === all.length) return [];
  const overall = having.length / all.length;
  const found = (Object.keys(attributeOf) as Attribute[]).flatMap((attribute) => {
    const among = countBy(having, attributeOf[attribute]);
    const everywhere = countBy(all, attributeOf[attribute]);
    return [...among].flatMap(([value, count]): Share[] => {
      const of = everywhere.get(value) ?? count;
      const unusual = count / of >= overall * LEAST_LIFT;
      const nearlyAll = count / having.length >= NEARLY_ALL || count / of >= NEARLY_ALL;
      return count >= LEAST_ALIKE && unusual && nearlyAll ? [{ attribute, value, count, of }] : [];
    });
  });
  return found
    .sort((a, b) => b.count - a.count || a.of - b.of || (a.value < b.value ? -1 : 1))
    .slice(0, MOST_SHARES);
}

function countBy(nodes: readonly FleetNode[], valueIn: (node: FleetNode) => string | null | undefined) {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const value = valueIn(node);
    if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}
