// SQL of receivers.

import type { Receiver, ReceiverKind } from "@holdfast/contracts/endpoints/notify";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Queryable, Tx } from "../../database/connect.ts";

export type ReceiverRow = {
  id: string;
  org_id: string;
  kind: ReceiverKind;
  address: string;
  creator_name: string;
  created_at: Date;
  last_delivered_at: Date | null;
  last_failed_at: Date | null;
};

export function presentReceiver(row: ReceiverRow): Receiver {
  const { id, kind, address } = row;
  return {
    ...{ id, kind, address, created_by: row.creator_name, created_at: row.created_at.toISOString() },
    last_delivered_at: row.last_delivered_at?.toISOString() ?? null,
    last_failed_at: row.last_failed_at?.toISOString() ?? null,
  };
}

/** Those that can get messages, newest first; at most as many as an organization may have. */
export async function selectReceivers(tx: Tx, id: string | null = null): Promise<ReceiverRow[]> {
  return tx<ReceiverRow[]>`
    SELECT r.id, r.org_id, r.kind, r.address, r.creator_name, r.created_at, d.last_delivered_at,
           CASE WHEN d.last_failed_at > coalesce(d.last_delivered_at, '-infinity') THEN d.last_failed_at END AS last_failed_at
    FROM notification_receivers r LEFT JOIN LATERAL (
      SELECT max(delivered_at) AS last_delivered_at, max(attempted_at) FILTER (WHERE delivered_at IS NULL AND answer IS NOT NULL)
        AS last_failed_at
      FROM (SELECT delivered_at, attempted_at, answer FROM notification_deliveries
            WHERE receiver_id = r.id ORDER BY id DESC LIMIT 50) AS newest) d ON true
    WHERE r.removed_at IS NULL AND (${id}::uuid IS NULL OR r.id = ${id})
    ORDER BY r.id DESC`;
}

/** Makes the count of an organization's receivers reliable: two creates wait for each other. */
export async function countReceivers(tx: Tx, orgId: string): Promise<number> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`receivers of ${orgId}`}, 0))`;
  const [row] = await tx<{ n: number }[]>`
    SELECT count(*)::int AS n FROM notification_receivers WHERE removed_at IS NULL`;
  return row?.n ?? 0;
}

export type NewReceiver = {
  id?: string;
  orgId: string;
  kind: ReceiverKind;
  address: string;
  sealed: Buffer | null;
  creatorName: string;
};

/** Undefined: the organization has this mail address already. */
export async function insertReceiver(tx: Tx, receiver: NewReceiver): Promise<string | undefined> {
  const [row] = await tx<{ id: string }[]>`
    INSERT INTO notification_receivers (id, org_id, kind, address, sealed, creator_name)
    VALUES (${receiver.id ?? uuidv7()}, ${receiver.orgId}, ${receiver.kind}, ${receiver.address}, ${receiver.sealed},
      ${receiver.creatorName})
    ON CONFLICT DO NOTHING RETURNING id`;
  return row?.id;
}

/** With what could still have been sent to it. Returns its address; undefined: there is none. */
export async function endReceiver(tx: Tx, id: string): Promise<string | undefined> {
  const [row] = await tx<{ address: string }[]>`
    UPDATE notification_receivers SET removed_at = now(), sealed = NULL
    WHERE id = ${id} AND removed_at IS NULL RETURNING address`;
  await tx`
    UPDATE notification_deliveries SET state = 'cancelled' WHERE receiver_id = ${id} AND state = 'pending'`;
  return row?.address;
}

export type SealedReceiver = {
  id: string;
  org_id: string;
  kind: ReceiverKind;
  address: string;
  sealed: Buffer | null;
};

/** Of all organizations, or of these. */
export async function selectSealed(
  system: Queryable,
  { orgIds = null, most }: { orgIds?: string[] | null; most: number },
): Promise<SealedReceiver[]> {
  return system<SealedReceiver[]>`
    SELECT id, org_id, kind, address, sealed FROM notification_receivers
    WHERE removed_at IS NULL AND (${orgIds}::uuid[] IS NULL OR org_id = ANY (${orgIds}::uuid[]))
    ORDER BY id LIMIT ${most}`;
}
