// SQL of deliveries.

import type { Delivery, DeliveryState, ReceiverKind } from "@holdfast/contracts/endpoints/notify";
import type { Notification } from "@holdfast/contracts/public/notification";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Queryable } from "../../database/connect.ts";

export type NewDelivery = {
  /** Made anew by default. */
  id?: string;
  /** Null: to the installation's own receiver of this kind. */
  receiver: { id: string; orgId: string } | null;
  kind: ReceiverKind;
  subject: string;
  message: Notification;
};

/** Returns the ids. One that is there already stays as it is. */
export async function insertDeliveries(db: Queryable, all: readonly NewDelivery[]): Promise<string[]> {
  if (all.length === 0) return [];
  const rows = await db<{ id: string }[]>`
    INSERT INTO notification_deliveries (id, org_id, receiver_id, kind, event, subject, message)
    SELECT id, org_id, receiver_id, kind, event, subject, message::json FROM unnest(
      ${all.map(({ id }) => id ?? uuidv7())}::uuid[], ${all.map(({ receiver }) => receiver?.orgId ?? null)}::uuid[],
      ${all.map(({ receiver }) => receiver?.id ?? null)}::uuid[], ${all.map(({ kind }) => kind)}::text[],
      ${all.map(({ message }) => message.event)}::text[], ${all.map(({ subject }) => subject)}::text[],
      ${all.map(({ message }) => JSON.stringify(message))}::text[]
    ) AS r (id, org_id, receiver_id, kind, event, subject, message)
    ON CONFLICT (id) DO NOTHING RETURNING id`;
  return rows.map(({ id }) => id);
}

export type DeliveryRow = {
  id: string;
  receiver_id: string | null;
  kind: ReceiverKind;
  address: string | null;
  message: Notification;
  state: DeliveryState;
  created_at: Date;
  attempts: number;
  attempted_at: Date | null;
  next_attempt_at: Date;
  delivered_at: Date | null;
  answer: string | null;
};

const selected = (db: Queryable) => db`
  SELECT d.id, d.receiver_id, d.kind, r.address, d.message, d.state, d.created_at, d.attempts, d.attempted_at,
         d.next_attempt_at, d.delivered_at, d.answer
  FROM notification_deliveries d LEFT JOIN notification_receivers r ON r.id = d.receiver_id`;

export type DeliveryPage = {
  before: string;
  limit: number;
  state?: DeliveryState | undefined;
  receiverId?: string | undefined;
  /** Only those to receivers of the installation. */
  ofInstallation?: boolean;
};

export async function selectDeliveries(db: Queryable, page: DeliveryPage): Promise<DeliveryRow[]> {
  const { state, receiverId, ofInstallation = false } = page;
  const none = db``;
  return db<DeliveryRow[]>`
    ${selected(db)} WHERE d.id < ${page.before}
      ${state === undefined ? none : db`AND d.state = ${state}`}
      ${receiverId === undefined ? none : db`AND d.receiver_id = ${receiverId}`}
      ${ofInstallation ? db`AND d.org_id IS NULL` : none}
    ORDER BY d.id DESC LIMIT ${page.limit + 1}`;
}

export async function selectDelivery(db: Queryable, id: string): Promise<DeliveryRow | undefined> {
  const [row] = await db<DeliveryRow[]>`${selected(db)} WHERE d.id = ${id}`;
  return row;
}

export async function selectDeliveriesById(db: Queryable, ids: readonly string[]): Promise<DeliveryRow[]> {
  return db<DeliveryRow[]>`${selected(db)} WHERE d.id = ANY (${ids as string[]}::uuid[]) ORDER BY d.id DESC`;
}

/** `addressOf`: of the installation's own receiver of a kind. */
export function presentDelivery(row: DeliveryRow, addressOf: (kind: ReceiverKind) => string): Delivery {
  const { id, receiver_id, kind, state, attempts, answer, message } = row;
  return {
    ...{ id, receiver_id, kind, address: row.address ?? addressOf(kind) },
    ...{
      event: message.event,
      title: message.title,
      severity: message.severity,
      incident_id: message.incident_id,
    },
    ...{ state, attempts, answer, created_at: row.created_at.toISOString() },
    attempted_at: row.attempted_at?.toISOString() ?? null,
    next_attempt_at: state === "pending" ? row.next_attempt_at.toISOString() : null,
    delivered_at: row.delivered_at?.toISOString() ?? null,
  };
}
