// Sends the messages that are due. Each is claimed for a time that is longer than an attempt can take: a process that dies
// loses its claim, and the message is sent again under the same id. So a receiver may get one twice, and never none.

import type { ReceiverKind } from "@holdfast/contracts/endpoints/notify";
import type { Notification } from "@holdfast/contracts/public/notification";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { FailureAudit } from "../../audit/failures/failures.ts";
import { type AuditTarget, systemActor } from "../../audit/record.ts";
import type { Sql } from "../../database/connect.ts";
import type { InstallationReceiver } from "../receivers/installation.ts";
import type { ReceiverVault } from "../receivers/vault.ts";
import { failureOf, type Outcome } from "../send/outcome.ts";
import type { Sender, Target } from "../send/sender.ts";
import { pauseAfter } from "./retry.ts";

export type Delivering = {
  system: Sql;
  sender: Pick<Sender, "send">;
  vault: Pick<ReceiverVault, "open">;
  failures: FailureAudit;
  installation: readonly InstallationReceiver[];
};

/** Longer than an attempt takes, with all its time limits. */
const CLAIMED_FOR = "90 seconds";
const MOST_IN_A_TURN = 50;
/** A receiver that does not respond keeps nobody else waiting. */
const MOST_OF_A_RECEIVER = 2;

type Claimed = {
  id: string;
  org_id: string | null;
  receiver_id: string | null;
  kind: ReceiverKind;
  message: Notification;
  attempts: number;
  address: string | null;
  sealed: Buffer | null;
};

/** Returns how many were sent, and how many of them were accepted. */
export async function deliverDue(options: Delivering): Promise<{ sent: number; delivered: number }> {
  const claimed = await claimDue(options.system);
  const outcomes = await Promise.all(
    claimed.map(async (one) => {
      const outcome = await attempt(options, one);
      if (outcome === "no receiver") await cancel(options.system, one);
      else await store(options, one, outcome);
      return outcome !== "no receiver" && outcome.delivered;
    }),
  );
  return { sent: outcomes.length, delivered: outcomes.filter(Boolean).length };
}

async function attempt(options: Delivering, one: Claimed): Promise<Outcome | "no receiver"> {
  try {
    const target = targetOf(one, options);
    return target ? await options.sender.send(target, one.id, one.message) : "no receiver";
  } catch (error) {
    // What was sealed cannot be opened: no reason not to send the others.
    return failureOf(error);
  }
}

/** Not those about a subject of which an earlier message to the same receiver is still pending. */
async function claimDue(system: Sql): Promise<Claimed[]> {
  return system<Claimed[]>`
    WITH due AS (
      SELECT d.id, d.next_attempt_at, row_number() OVER (
        PARTITION BY d.org_id, d.receiver_id, d.kind ORDER BY d.next_attempt_at, d.id) AS place
      FROM notification_deliveries d
      WHERE d.state = 'pending' AND d.next_attempt_at <= now() AND NOT EXISTS (
        SELECT FROM notification_deliveries e
        WHERE e.state = 'pending' AND e.id < d.id AND e.subject = d.subject AND e.kind = d.kind
          AND e.org_id IS NOT DISTINCT FROM d.org_id AND e.receiver_id IS NOT DISTINCT FROM d.receiver_id)
    ), free AS (
      SELECT d.id FROM notification_deliveries d JOIN due ON due.id = d.id
      WHERE due.place <= ${MOST_OF_A_RECEIVER} AND d.state = 'pending' AND d.next_attempt_at <= now()
      ORDER BY due.next_attempt_at LIMIT ${MOST_IN_A_TURN} FOR UPDATE OF d SKIP LOCKED
    ), claimed AS (
      UPDATE notification_deliveries d SET attempts = d.attempts + 1, attempted_at = now(),
        next_attempt_at = now() + ${CLAIMED_FOR}::interval
      FROM free WHERE d.id = free.id
      RETURNING d.id, d.org_id, d.receiver_id, d.kind, d.message, d.attempts
    )
    SELECT c.*, r.address, r.sealed FROM claimed c LEFT JOIN notification_receivers r
      ON r.id = c.receiver_id AND r.removed_at IS NULL`;
}

function targetOf(one: Claimed, { vault, installation }: Delivering): Target | undefined {
  if (one.receiver_id === null) return installation.find(({ kind }) => kind === one.kind)?.target;
  if (one.kind === "mail") return one.address === null ? undefined : { kind: "mail", to: one.address };
  return one.sealed ? { kind: "webhook", ...vault.open(one.receiver_id, one.sealed) } : undefined;
}

/** It was removed, or the settings no longer name it, since the message was queued. */
async function cancel(system: Sql, { id, attempts }: Claimed): Promise<void> {
  await system`
    UPDATE notification_deliveries SET state = 'cancelled' WHERE id = ${id} AND attempts = ${attempts} AND state = 'pending'`;
}

async function store(
  { system, failures, installation }: Delivering,
  one: Claimed,
  outcome: Outcome,
): Promise<void> {
  const { id, attempts, message } = one;
  const pause = outcome.delivered ? undefined : pauseAfter(attempts, { once: message.event === "receiver.test" });
  const state = outcome.delivered ? "delivered" : pause === undefined ? "failed" : "pending";
  await system.begin(async (tx) => {
    // Nothing, if the claim was lost meanwhile or the receiver was removed.
    const stored = await tx`
      UPDATE notification_deliveries SET state = ${state}, answer = ${outcome.answer},
        delivered_at = CASE WHEN ${outcome.delivered} THEN now() END,
        next_attempt_at = now() + ${pause ?? 0} * interval '1 second'
      WHERE id = ${id} AND attempts = ${attempts} AND state = 'pending' RETURNING id`;
    if (stored.length === 0) return;
    const credentialId = one.receiver_id ?? `installation ${one.kind}`;
    const address = one.address ?? installation.find(({ kind }) => kind === one.kind)?.address ?? null;
    const target: AuditTarget = { type: "receiver", id: one.receiver_id, name: address };
    const event = { orgId: one.org_id, by: BY, action: ACTION, credentialId, target, correlationId: uuidv7() };
    if (outcome.delivered) await failures.recovered(tx, event);
    else {
      const details = { delivery_id: id, event: message.event, answer: outcome.answer };
      await failures.failed(tx, { ...event, result: "failed", reason: "delivery_failed", details });
    }
  });
}

const ACTION = "receiver.deliver";
const BY = systemActor("holdfast");
