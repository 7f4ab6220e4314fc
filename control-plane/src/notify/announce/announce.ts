// Queues messages about incidents: an idempotent function of what is stored. What is said of an incident and the messages
// that say it are written in one transaction, so that none is lost and none is written twice.

import type { ReceiverKind } from "@holdfast/contracts/endpoints/notify";
import type { Notification } from "@holdfast/contracts/public/notification";
import { presentReason } from "@holdfast/contracts/reasons/catalogue";
import type { Sql, Tx } from "../../database/connect.ts";
import { presentShared, titleOfCause } from "../../drift/common-cause/words.ts";
import { insertDeliveries, type NewDelivery } from "../deliveries/queries.ts";
import { type Announced, incidentMessage } from "../message.ts";
import { type SealedReceiver, selectSealed } from "../receivers/queries.ts";
import { type Announcement, type Candidate, planAnnouncements } from "./plan.ts";
import {
  type IncidentRow,
  markAnnounced,
  markPlatformAnnounced,
  type PlatformRow,
  selectCandidates,
  selectDue,
  selectPlatformCandidates,
  selectTopics,
  tryToAnnounce,
  writeTopics,
} from "./queries.ts";

export type AnnounceOptions = {
  /** The kinds of receivers that the installation itself has. */
  installation: readonly ReceiverKind[];
  publicUrl: string | undefined;
  /** By the database's clock, unless it is given. */
  now?: Date;
};
type At = AnnounceOptions & { now: Date };

/** The rest follows in the next turns. */
const MOST_IN_A_TURN = 5_000;
const MOST_RECEIVERS_IN_A_TURN = 10_000;

/** Returns the ids of the messages that were queued. */
export async function announceIncidents(system: Sql, options: AnnounceOptions): Promise<string[]> {
  const due = await selectDue(system);
  const at = { ...options, now: options.now ?? due.now };
  // Two transactions: whoever compares incidents locks the platform's before those of organizations.
  const ofPlatform = due.platform ? await system.begin((tx) => announcePlatform(tx, at)) : [];
  const ofOrgs = due.orgs ? await system.begin((tx) => announceOrgs(tx, at)) : [];
  return [...ofPlatform, ...ofOrgs];
}

type Row = Candidate & { row: IncidentRow };

async function announceOrgs(tx: Tx, options: At): Promise<string[]> {
  if (!(await tryToAnnounce(tx))) return [];
  const rows = await selectCandidates(tx, MOST_IN_A_TURN);
  if (rows.length === 0) return [];
  const orgIds = [...new Set(rows.map(({ org_id }) => org_id))];
  const topics = new Map(
    (await selectTopics(tx, orgIds)).map(({ org_id, topic, queued_at }) => [
      `${org_id} ${topic}`,
      queued_at.getTime(),
    ]),
  );
  const plans = planAnnouncements(rows.map(candidateOf), {
    now: options.now.getTime(),
    lastQueuedAt: (orgId, topic) => topics.get(`${orgId} ${topic}`),
  });
  const receivers = Map.groupBy(
    await selectSealed(tx, { orgIds, most: MOST_RECEIVERS_IN_A_TURN }),
    ({ org_id }) => org_id,
  );
  const queued = await insertDeliveries(
    tx,
    plans.flatMap((plan) => deliveriesOf(plan, receivers.get(plan.orgId) ?? [], options)),
  );
  await writeTopics(
    tx,
    plans.flatMap(({ orgId, topic }) => (topic === null ? [] : { orgId, topic })),
  );
  await markAnnounced(
    tx,
    plans.flatMap(({ event, incidents }) =>
      incidents.map(({ id }) => ({ id, announced: event === "incident.opened" ? "opened" : "recovered" })),
    ),
  );
  return queued;
}

function candidateOf(row: IncidentRow): Row {
  const { id, org_id: orgId, reason, compared, qualifies, announced } = row;
  return {
    ...{ id, orgId, reason, compared, qualifies, announced, row },
    ...{ ofNode: row.node_id !== null, isPart: row.part_of !== null },
    ...{ openedAt: row.opened_at.getTime(), closedAt: row.closed_at?.getTime() ?? null },
  };
}

function deliveriesOf(
  { event, orgId, topic, incidents }: Announcement<Row>,
  receivers: readonly SealedReceiver[],
  { installation, publicUrl, now }: At,
): NewDelivery[] {
  const [first, ...others] = incidents;
  if (!first) return [];
  const { slug, org_name: name } = first.row;
  const message = incidentMessage(event, [announcedOf(first.row), ...others.map(({ row }) => announcedOf(row))], {
    ...{ now, publicUrl, organization: { id: orgId, slug, name } },
  });
  // What opened and what is over are one subject: the second message must not overtake the first.
  const subject = topic === null ? first.id : `${orgId} ${first.reason}`;
  const own = receivers.map(({ id, kind }): NewDelivery => ({ receiver: { id, orgId }, kind, subject, message }));
  // A common cause is announced to the installation once, and not for each organization.
  return first.ofNode ? [...own, ...toInstallation(installation, subject, message)] : own;
}

function toInstallation(kinds: readonly ReceiverKind[], subject: string, message: Notification): NewDelivery[] {
  return kinds.map((kind) => ({ receiver: null, kind, subject, message }));
}

function announcedOf(row: IncidentRow): Announced {
  const { id, node_id, node_name, reason, severity, owner, attribute } = row;
  return {
    ...{ id, reason, severity, owner, nextAction: row.next_action, userState: row.user_state },
    node: node_id === null ? null : { id: node_id, name: node_name ?? node_id },
    shared: attribute && sharedOf({ ...row, attribute, value: row.value ?? "" }, "your nodes"),
    ...{ beganAt: row.began_at, closedAt: row.closed_at },
  };
}

function sharedOf(
  row: Pick<
    PlatformRow,
    "reason" | "attribute" | "value" | "nodes" | "began_at" | "closed_at" | "outage_began_at" | "outage_ended_at"
  >,
  whose: string,
) {
  return { title: titleOfCause(row), sentence: presentShared(row, whose).sentence, nodes: row.nodes };
}

async function announcePlatform(tx: Tx, { installation, publicUrl, now }: At): Promise<string[]> {
  const rows = await selectPlatformCandidates(tx, MOST_IN_A_TURN);
  const deliveries = rows.flatMap((row) => {
    const { id, reason } = row;
    const { severity, owner_id: owner, next_action: nextAction } = presentReason(reason);
    const announced: Announced = {
      ...{ id, reason, severity, owner, nextAction, userState: null, node: null },
      shared: sharedOf(row, "all nodes"),
      ...{ beganAt: row.began_at, closedAt: row.closed_at },
    };
    const event = row.closed_at === null ? "incident.opened" : "incident.recovered";
    const message = incidentMessage(event, [announced], { organization: null, now, publicUrl });
    return toInstallation(installation, id, message);
  });
  await markPlatformAnnounced(tx, rows);
  return insertDeliveries(tx, deliveries);
}
