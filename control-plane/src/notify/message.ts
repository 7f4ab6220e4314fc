// The words of messages. They say what was observed and what to do, and contain nothing that only a person with access to
// the organization may read beyond names, reasons and times.

import { MOST_NAMED_NODES, type Notification } from "@holdfast/contracts/public/notification";
import { isReason, reasons, titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import {
  type NextAction,
  nextActions,
  type Severity,
  type UserState,
} from "@holdfast/contracts/reasons/vocabulary";
import { duration } from "../drift/duration.ts";

export type Organization = NonNullable<Notification["organization"]>;

export type Announced = {
  id: string;
  /** Null: of several nodes. */
  node: { id: string; name: string } | null;
  /** What they share, in a sentence; null: of one node. */
  shared: { title: string; sentence: string; nodes: number } | null;
  reason: string;
  severity: Severity | null;
  owner: OwnerId | null;
  nextAction: NextAction | null;
  userState: UserState | null;
  beganAt: Date;
  closedAt: Date | null;
};

const none: Omit<Notification, "event" | "at" | "title" | "text"> = {
  ...{ severity: null, organization: null, reason: null, user_state: null, owner: null, next_action: null },
  ...{ incident_id: null, node_count: 0, nodes: [], began_at: null, recovered_at: null, url: null },
};

/** Incidents with one reason; the first of them speaks for all. */
export function incidentMessage(
  event: "incident.opened" | "incident.recovered",
  incidents: readonly [Announced, ...Announced[]],
  context: { organization: Organization | null; now: Date; publicUrl: string | undefined },
): Notification {
  const [first] = incidents;
  const nodes = incidents.flatMap(({ id, node }) => (node ? [{ ...node, incident_id: id }] : []));
  const count = first.shared?.nodes ?? incidents.length;
  const what = first.shared?.title ?? titleOf(first.reason);
  const who = first.node && count === 1 ? first.node.name : `${count} ${count === 1 ? "node" : "nodes"}`;
  const recovered = event === "incident.recovered";
  const closed = incidents.flatMap(({ closedAt }) => (closedAt ? closedAt.getTime() : []));
  const lastClosed = closed.length > 0 ? new Date(Math.max(...closed)) : null;
  const began = new Date(Math.min(...incidents.map(({ beganAt }) => beganAt.getTime())));
  const single = incidents.length === 1;
  return {
    ...none,
    event,
    at: (recovered ? (lastClosed ?? context.now) : began).toISOString(),
    title: `${recovered ? "Recovered: " : ""}${what} on ${who}`,
    text: recovered
      ? recoveredText({ what, who, began, closed: lastClosed ?? context.now })
      : openedText(first, { what, who, began }),
    ...{ severity: first.severity, organization: context.organization, reason: first.reason },
    ...{ user_state: first.userState, owner: first.owner, next_action: recovered ? null : first.nextAction },
    incident_id: single ? first.id : null,
    ...{ node_count: count, nodes: nodes.slice(0, MOST_NAMED_NODES) },
    began_at: began.toISOString(),
    recovered_at: recovered ? (lastClosed?.toISOString() ?? null) : null,
    url: context.publicUrl ? pageOf(context.publicUrl, first, single) : null,
  };
}

type Words = { what: string; who: string; began: Date };

function openedText({ reason, nextAction, shared }: Announced, { what, who, began }: Words): string {
  const known = isReason(reason) ? reasons[reason] : undefined;
  return [
    `${what} on ${who} since ${minute(began)}.`,
    ...(shared ? [shared.sentence] : known ? [known.message] : []),
    ...(nextAction ? [nextActions[nextAction]] : []),
  ].join(" ");
}

function recoveredText({ what, who, began, closed }: Words & { closed: Date }): string {
  const lasted = duration(Math.max(0, closed.getTime() - began.getTime()));
  return `${what} on ${who} is over since ${minute(closed)}. It lasted ${lasted}. No cause is left.`;
}

function pageOf(publicUrl: string, { node }: Announced, single: boolean): string {
  return node && single ? `${publicUrl}/nodes/${node.id}` : `${publicUrl}/nodes`;
}

export function testMessage(organization: Organization | null, now: Date): Notification {
  return {
    ...{ ...none, event: "receiver.test", at: now.toISOString(), organization },
    title: "Test message",
    text: "This is a test of Holdfast. Nothing is wrong. Messages about incidents arrive the same way.",
  };
}

export function databaseMessage(
  event: "database.unreachable" | "database.recovered",
  { began, recovered, publicUrl }: { began: Date; recovered: Date | null; publicUrl: string | undefined },
): Notification {
  return {
    ...none,
    ...{ event, severity: "P0", owner: "control_plane", at: (recovered ?? began).toISOString() },
    title: recovered ? "Recovered: database reachable" : "Database unreachable",
    text: recovered
      ? `The api reached its database again at ${minute(recovered)}, after ${duration(recovered.getTime() - began.getTime())}.`
      : `The api has not reached its database since ${minute(began)}. Requests are refused, and no incident can be recorded. Check PostgreSQL and the network to it; \`holdfast status\` shows the cause.`,
    next_action: recovered ? null : "fix_control_plane",
    ...{ began_at: began.toISOString(), recovered_at: recovered?.toISOString() ?? null, url: publicUrl ?? null },
  };
}

const minute = (at: Date) => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
