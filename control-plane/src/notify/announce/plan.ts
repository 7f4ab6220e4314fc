// Which messages are due about the incidents of organizations. One per incident when it opens and one when it is over; nodes
// with one reason that come together are one message. Pure.

import type { NotificationEvent } from "@holdfast/contracts/public/notification";

/** What receivers have been sent about an incident. */
export type Announced = "nothing" | "opened" | "recovered";

/** Times in milliseconds. */
export type Candidate = {
  id: string;
  orgId: string;
  reason: string;
  /** False: of several nodes with one cause. */
  ofNode: boolean;
  /** The incident of several nodes has the message. */
  isPart: boolean;
  /** P0, or security action is required. */
  qualifies: boolean;
  /** Whether it was compared with those of other nodes since it changed. */
  compared: boolean;
  openedAt: number;
  closedAt: number | null;
  announced: Announced;
};

type IncidentEvent = Extract<NotificationEvent, `incident.${string}`>;
export type Announcement<C extends Candidate = Candidate> = {
  event: IncidentEvent;
  orgId: string;
  /** Messages with one topic come at most once in `GATHER_MS`; null: each comes at once. */
  topic: string | null;
  incidents: C[];
};

/** Other nodes with the same cause follow within seconds, and then one message names the cause. P0 has a minute. */
export const HOLD_MS = 15_000;
/** So long after a message, further nodes with that reason are gathered for the next one. */
export const GATHER_MS = 60_000;

export function dueEvent(one: Candidate, now: number): IncidentEvent | undefined {
  if (one.announced === "opened") return one.closedAt === null ? undefined : "incident.recovered";
  if (!one.qualifies || one.isPart || !one.compared) return undefined;
  if (one.closedAt === null) return one.ofNode && now - one.openedAt < HOLD_MS ? undefined : "incident.opened";
  // It was over before anything was sent: one message has both.
  return one.announced === "nothing" ? "incident.recovered" : undefined;
}

const topicOf = (event: IncidentEvent, { ofNode, reason }: Pick<Candidate, "ofNode" | "reason">) =>
  ofNode ? `${event} ${reason}` : null;

/** `lastQueuedAt`: of a topic of an organization. */
export function planAnnouncements<C extends Candidate>(
  candidates: readonly C[],
  options: { now: number; lastQueuedAt(orgId: string, topic: string): number | undefined },
): Announcement<C>[] {
  const { now, lastQueuedAt } = options;
  const groups = new Map<string, Announcement<C>>();
  for (const one of candidates) {
    const event = dueEvent(one, now);
    if (event === undefined) continue;
    const topic = topicOf(event, one);
    const key = `${one.orgId} ${topic ?? one.id}`;
    const group = groups.get(key) ?? { event, orgId: one.orgId, topic, incidents: [] };
    group.incidents.push(one);
    groups.set(key, group);
  }
  return [...groups.values()].filter(({ orgId, topic }) => {
    const last = topic === null ? undefined : lastQueuedAt(orgId, topic);
    // A time in the future was written by a clock that was wrong: it holds nothing back.
    return last === undefined || now - last >= GATHER_MS || last > now;
  });
}
