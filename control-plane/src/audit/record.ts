// Writes audit events in the transaction of the change that they describe, so that neither exists without
// the other. Each is also a log line, found by the same correlation id.

import { createHash } from "node:crypto";
import type { AuditEvent, AuditResult } from "@holdfast/contracts/endpoints/audit";
import type { ErrorCode } from "@holdfast/contracts/errors";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import type { Fragment, Queryable } from "../database/connect.ts";
import { type Actor, nameOf } from "../people/actor.ts";

export type AuditActor = Pick<AuditEvent, "actor_type" | "actor_id" | "actor_name" | "role">;
export type AuditTarget = {
  type: string;
  id?: string | null;
  name?: string | null;
  /** Whose trail the event belongs to, when not that of the organization acted in. */
  orgId?: string;
  /** What the event is a part of, when not of the request alone. */
  correlationId?: string;
};

export type NewAuditEvent = {
  orgId: string | null;
  by: AuditActor;
  action: string;
  target: AuditTarget;
  result: AuditResult;
  /** The code of the reason; absent exactly when the action was allowed. */
  reason?: ErrorCode | ReasonCode;
  /** What the actor used: a certificate's serial, never a secret. Only repetitions with the same one are one failure. */
  credentialId?: string;
  /** The app that the actor acted for; nothing sets it yet for lack of apps. */
  appInstanceId?: string;
  correlationId: string;
  details?: Record<string, unknown>;
};

export function auditActor(actor: Actor | undefined, role: string): AuditActor {
  if (actor === undefined)
    return { actor_type: "anonymous", actor_id: null, actor_name: "anonymous", role: "none" };
  const actorId = actor.type === "local_operator" ? null : actor.id;
  return { actor_type: actor.type, actor_id: actorId, actor_name: nameOf(actor), role };
}

/** The actor that a row remembers. */
export function actorOf({ actor_type, actor_id, actor_name, role }: AuditActor): AuditActor {
  return { actor_type, actor_id, actor_name, role };
}

/** A part of the control plane that acts by itself. */
export function systemActor(name: string): AuditActor {
  return { actor_type: "system", actor_id: null, actor_name: name, role: "system" };
}

export async function recordAudit(db: Queryable, log: Log, event: NewAuditEvent): Promise<void> {
  const id = uuidv7();
  const orgId = event.target.orgId ?? event.orgId;
  const correlationId = event.target.correlationId ?? event.correlationId;
  await db`
    INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action,
      target_type, target_id, target_name, result, reason, correlation_id, incident_id, details)
    VALUES (${id}, ${orgId}, ${event.by.actor_type}, ${event.by.actor_id}, ${event.by.actor_name},
      ${event.by.role}, ${event.action}, ${event.target.type}, ${event.target.id ?? null},
      ${event.target.name ?? null}, ${event.result}, ${event.reason ?? null}, ${correlationId},
      ${openIncidentOf(db, orgId, event.target)}, ${db.json((event.details ?? {}) as never)})`;
  log.info(
    {
      audit_id: id,
      correlation_id: correlationId,
      dedupe_key_hash: dedupeKeyHash(event),
      action: event.action,
      result: event.result,
      reason: event.reason,
    },
    "audit",
  );
}

const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Of the node that the target is or is on. Only in the trail's own organization: a refused request may name any id. */
function openIncidentOf(db: Queryable, orgId: string | null, { type, id }: AuditTarget): Fragment {
  if (orgId === null || !id || !isUuid.test(id)) return db`NULL`;
  const nodeId = nodeIdOf(db, type, id);
  return nodeId
    ? db`(SELECT v.incident_id FROM node_verdicts v WHERE v.node_id = ${nodeId} AND v.org_id = ${orgId}::uuid)`
    : db`NULL`;
}

function nodeIdOf(db: Queryable, type: string, id: string): Fragment | undefined {
  switch (type) {
    case "node":
      return db`${id}::uuid`;
    case "allocation":
      return db`(SELECT node_id FROM allocations WHERE id = ${id}::uuid)`;
    case "terminal":
      return db`(SELECT node_id FROM terminal_sessions WHERE id = ${id}::uuid)`;
    case "enrollment_token":
      return db`(SELECT node_id FROM enrollment_tokens WHERE id = ${id}::uuid)`;
    case "task":
      return db`(SELECT node_id FROM tasks WHERE id = ${id}::uuid)`;
    default:
      return undefined;
  }
}

/** Equal for repetitions of one action by one actor for one reason; reveals neither. */
export function dedupeKeyHash(
  event: Pick<NewAuditEvent, "by" | "action" | "reason" | "target" | "credentialId" | "appInstanceId">,
): string {
  const { by, target, appInstanceId, credentialId, action, reason } = event;
  const key = [by.actor_type, by.actor_id, target.id, appInstanceId, credentialId, action, reason];
  return createHash("sha256").update(JSON.stringify(key)).digest("hex").slice(0, 16);
}
