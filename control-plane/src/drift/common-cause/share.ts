// What each organization sees of a common cause: its own nodes, and what follows from them alone. Pure.

import { reasons } from "@holdfast/contracts/reasons/catalogue";
import { severities } from "@holdfast/contracts/reasons/vocabulary";
import { budgets } from "../classify/rule.ts";
import type { CommonCause } from "./find.ts";
import type { FleetRow } from "./queries.ts";

export type IdentifiedCause = CommonCause & { id: string };

export type OrgCause = {
  /** Of the organization and the cause. */
  key: string;
  orgId: string;
  cause: IdentifiedCause;
  nodes: readonly FleetRow[];
  /** When the first of its own nodes began. */
  since: number;
  answer: Answer;
};
type Answer = Pick<FleetRow, "signal" | "severity" | "owner" | "next_action" | "user_state"> &
  Pick<FleetRow, "detect_seconds" | "repair_within">;

export const orgKeyOf = (orgId: string, causeId: string) => `${orgId} ${causeId}`;

export function orgCausesOf(causes: readonly IdentifiedCause[], nodes: readonly FleetRow[]): OrgCause[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return causes.flatMap((cause) => {
    const own = cause.nodes.flatMap((id) => byId.get(id) ?? []);
    return [...Map.groupBy(own, ({ org_id }) => org_id)].map(([orgId, its]): OrgCause => {
      const since = its.reduce(
        (first, { reason_since }) => Math.min(first, reason_since?.getTime() ?? first),
        Infinity,
      );
      const answer = cause.attribute === "control_plane" ? ofControlPlane : worstOf(its);
      return { key: orgKeyOf(orgId, cause.id), orgId, cause, nodes: its, since, answer };
    });
  });
}

/** Repairs on nodes do not help while the control plane is the cause. */
const ofControlPlane: Answer = (() => {
  const { severity, owner, nextAction, userState } = reasons.control_plane_unreachable;
  const budget = budgets[severity ?? "P1"];
  return {
    ...{ signal: "control_plane_unreachable", severity: severity ?? "P1", owner: owner ?? "control_plane" },
    ...{ next_action: nextAction, user_state: userState },
    ...{ detect_seconds: budget.detect, repair_within: String(budget.repair) },
  };
})();

/** They have the same reason; severity and advice may still differ with what else is known. */
function worstOf(nodes: readonly FleetRow[]): Answer {
  const rank = ({ severity }: FleetRow) => (severity === null ? severities.length : severities.indexOf(severity));
  const [worst] = nodes.toSorted((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1));
  if (!worst) throw new Error("a common cause without nodes");
  return worst;
}
