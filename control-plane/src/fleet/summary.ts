// The fleet in a few numbers: how many nodes are unhealthy, since when, and which incidents they have in common. Pure.

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
import type { OrgIncident } from "../drift/common-cause/of-organization.ts";
import type { StoredCause } from "../drift/verdicts/stored.ts";
import { commonOf, ownSideOf } from "./common-causes.ts";
import { matches } from "./filter.ts";
import type { FleetNode } from "./node.ts";

export function summarize(
  all: readonly FleetNode[],
  filter: FleetFilter,
  { at, incidents, nodeApiUrl }: { at: Date; incidents: readonly OrgIncident[]; nodeApiUrl: string },
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
    troubles: troublesOf(nodes, incidents),
    pending: nodes.filter(({ state, causes: found }) => state === "silent" && found.length === 0).length,
    versions: ranking(nodes.flatMap(({ version }) => version ?? [])),
    capabilities: ranking(nodes.flatMap(({ report }) => report?.capabilities ?? [])),
    own_side: ownSideOf(incidents, { nodeApiUrl }),
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

function troublesOf(nodes: readonly FleetNode[], incidents: readonly OrgIncident[]): Trouble[] {
  const byCode = new Map<string, Having[]>();
  for (const node of nodes) {
    for (const cause of node.causes) {
      const having = byCode.get(cause.spokenAs);
      if (having) having.push({ node, cause });
      else byCode.set(cause.spokenAs, [{ node, cause }]);
    }
  }
  return [...byCode]
    .map(([code, having]) => troubleOf(code, having, incidents))
    .sort((a, b) => rankOf(a) - rankOf(b) || b.count - a.count || (a.code < b.code ? -1 : 1));
}

function troubleOf(code: string, having: readonly Having[], incidents: readonly OrgIncident[]): Trouble {
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
    common: commonOf(having, incidents),
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
