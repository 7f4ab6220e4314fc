// The audit trail: who did what to what, with which result. Append-only.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const AuditResult = z.enum(["allowed", "denied", "failed"]);
export type AuditResult = z.infer<typeof AuditResult>;

const actorTypes = ["user", "token", "local_operator", "system", "anonymous", "node"] as const;

export const AuditEvent = z.strictObject({
  id: Id,
  at: Time,
  actor_type: z.enum(actorTypes),
  actor_id: Id.nullable(),
  actor_name: z.string().describe("Its name at that time."),
  role: z.string().describe("The role the actor acted in."),
  action: z.string().describe("`noun.verb`, such as `token.create`."),
  target_type: z.string(),
  target_id: z.string().nullable(),
  target_name: z.string().nullable(),
  result: AuditResult,
  reason: z.string().nullable().describe("The error code of a denied or failed action."),
  correlation_id: z.string(),
  incident_id: Id.nullable().describe("The incident of the target's node that was open then."),
  details: z.record(z.string(), z.unknown()),
});
export type AuditEvent = z.infer<typeof AuditEvent>;

const AuditFilters = PageQuery.extend({
  actor: Text.max(254).optional().describe("Id, or part of the name."),
  action: Text.max(80).optional().describe("Exact, or a noun with a trailing dot: `token.`"),
  target: Text.max(254).optional().describe("Id, or part of the name."),
  result: AuditResult.optional(),
  correlation_id: Text.max(64).optional(),
  incident_id: Id.optional(),
  since: Time.optional(),
  until: Time.optional(),
});

export const listAudit = endpoint({
  name: "listAudit",
  noun: "audit",
  method: "GET",
  path: "/v1/audit",
  summary: "List the organization's audit events, newest first",
  access: { scope: "audit:read" },
  query: AuditFilters,
  answer: pageOf(AuditEvent),
  errors: ["invalid_cursor"],
});

export const listPlatformAudit = endpoint({
  name: "listPlatformAudit",
  noun: "audit",
  method: "GET",
  path: "/v1/platform/audit",
  summary: "List the audit events of all organizations and of the platform itself",
  access: "operator",
  query: AuditFilters,
  answer: pageOf(AuditEvent.extend({ org_id: Id.nullable() })),
  errors: ["invalid_cursor"],
});
