// What ends with a person or with an API token: found by one set of conditions, whether it is only listed before the
// change or revoked with it. Each revoked token has its own audit event.

import type { IssuedToken, IssuedTokenKind } from "@holdfast/contracts/public/issued-tokens";
import type { Role } from "@holdfast/contracts/public/permissions";
import type { Log } from "@holdfast/service/log";
import type { ApiContext } from "../api/context.ts";
import type { OrgCall } from "../api/route.ts";
import { type AuditActor, auditActor, recordAudit } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { neededRoles, type TokenTable } from "./standing.ts";

/**
 * Whose tokens: all that a person created, or (with `keeps`) those that need more than that role; or one API token. What
 * was created with a revoked token is revoked too.
 */
export type Origin = { person: string; keeps?: Role } | { apiToken: string };

type Row = {
  id: string;
  org_id: string | null;
  kind: IssuedTokenKind;
  name: string | null;
  node_id: string | null;
  expires_at: Date | null;
};

type Selected = {
  /** The API tokens themselves and all created with them, whether they are valid or not. */
  family: string[];
  live: Row[];
};

/** In a transaction of one organization: what ends there. In one of the system role: in all of them. */
async function selectIssued(tx: Tx, origin: Origin, options: { lock: boolean }): Promise<Selected> {
  const lock = options.lock ? tx`FOR UPDATE OF t` : tx``;
  const lost = (kind: TokenTable) => {
    if ("apiToken" in origin) return tx`false`;
    if (origin.keeps === undefined) return tx`t.created_by = ${origin.person}`;
    return tx`(t.created_by = ${origin.person} AND NOT ${origin.keeps}::text = ANY(${neededRoles(tx, kind)}))`;
  };
  // Waits for a token that is being created with one of these, so that the next statement sees it.
  if (options.lock && "apiToken" in origin) {
    await tx`SELECT FROM api_tokens WHERE id = ${origin.apiToken} FOR UPDATE`;
  }
  const apiTokens = await tx<(Row & { live: boolean })[]>`
    WITH RECURSIVE family AS (
      SELECT t.id FROM api_tokens t WHERE ${"apiToken" in origin ? tx`t.id = ${origin.apiToken}` : lost("api_token")}
      UNION SELECT child.id FROM api_tokens child JOIN family ON child.parent_id = family.id
    )
    SELECT t.id, t.org_id, 'api_token' AS kind, t.name, NULL::uuid AS node_id, t.expires_at,
           t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()) AS live
    FROM api_tokens t WHERE t.id IN (SELECT id FROM family) ORDER BY t.id ${lock}`;
  const family = apiTokens.map(({ id }) => id);
  const enrollmentTokens = await tx<Row[]>`
    SELECT t.id, t.org_id, t.kind || '_token' AS kind, coalesce(n.name, t.node_name) AS name, t.node_id, t.expires_at
    FROM enrollment_tokens t LEFT JOIN nodes n ON n.id = t.node_id
    WHERE t.revoked_at IS NULL AND t.expires_at > now() AND (t.used_at IS NULL OR t.kind = 'bootstrap')
      AND (t.parent_id = ANY(${family}::uuid[]) OR ${lost("enrollment_token")})
    ORDER BY t.id ${lock}`;
  const pairingTokens = await tx<Row[]>`
    SELECT t.id, t.org_id, 'agent_pairing_token' AS kind, NULL AS name, NULL::uuid AS node_id, t.expires_at
    FROM execution_pairing_tokens t
    WHERE t.revoked_at IS NULL AND t.expires_at > now() AND t.used_at IS NULL
      AND (t.parent_id = ANY(${family}::uuid[]) OR ${lost("pairing_token")})
    ORDER BY t.id ${lock}`;
  // Links of operators belong to no organization, and only the system role sees them.
  const links = await tx<Row[]>`
    SELECT t.id, t.org_id, CASE t.purpose WHEN 'invitation' THEN 'invitation' ELSE 'admin_link' END AS kind, t.email AS name, NULL::uuid AS node_id, t.expires_at
    FROM one_time_links t
    WHERE t.used_at IS NULL AND t.replaced_at IS NULL AND t.expires_at > now()
      AND (t.parent_id = ANY(${family}::uuid[]) OR ${lost("invitation")})
    ORDER BY t.id ${lock}`;
  const live = [...apiTokens.filter((token) => token.live), ...enrollmentTokens, ...pairingTokens, ...links];
  return { family, live };
}

/** What would end, without ending it. */
export async function listIssued(tx: Tx, origin: Origin): Promise<IssuedToken[]> {
  return (await selectIssued(tx, origin, { lock: false })).live.map(toIssuedToken);
}

const auditAction: Record<IssuedTokenKind, string> = {
  api_token: "token.revoke",
  pairing_token: "node.token_revoke",
  bootstrap_token: "node.token_revoke",
  agent_pairing_token: "agent.pairing_token_revoke",
  invitation: "member.cancel_invitation",
  admin_link: "admin_link.revoke",
};

const auditType: Record<IssuedTokenKind, string> = {
  api_token: "token",
  pairing_token: "enrollment_token",
  bootstrap_token: "enrollment_token",
  agent_pairing_token: "agent_pairing_token",
  invitation: "invitation",
  admin_link: "admin_link",
};

type Ending = { by: AuditActor; correlationId: string; log: Log; because: string };

/** `because`: the action that revokes the tokens. */
export function endingOf(
  { log }: Pick<ApiContext, "log">,
  { actor, org, correlationId }: Pick<OrgCall<unknown>, "actor" | "org" | "correlationId">,
  because: string,
): Ending {
  return { by: auditActor(actor, org.role), correlationId, log, because };
}

/** Revokes them permanently: they stay revoked when their creator gets the role again. */
export async function endIssued(tx: Tx, origin: Origin, ending: Ending): Promise<IssuedToken[]> {
  const { family, live } = await selectIssued(tx, origin, { lock: true });
  const ids = (...kinds: IssuedTokenKind[]) => live.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id);
  // Revoking twice keeps the first time.
  await tx`UPDATE api_tokens SET revoked_at = now() WHERE id = ANY(${family}::uuid[]) AND revoked_at IS NULL`;
  await tx`
    UPDATE enrollment_tokens SET revoked_at = now()
    WHERE id = ANY(${ids("pairing_token", "bootstrap_token")}::uuid[])`;
  await tx`
    UPDATE execution_pairing_tokens SET revoked_at = now() WHERE id = ANY(${ids("agent_pairing_token")}::uuid[])`;
  await tx`UPDATE one_time_links SET replaced_at = now() WHERE id = ANY(${ids("invitation", "admin_link")}::uuid[])`;
  for (const { id, org_id, kind, name, node_id } of live) {
    // The token that a request revokes has the event of that request.
    if ("apiToken" in origin && id === origin.apiToken) continue;
    await recordAudit(tx, ending.log, {
      orgId: org_id,
      by: ending.by,
      action: auditAction[kind],
      target: { type: auditType[kind], id, name },
      result: "allowed",
      correlationId: ending.correlationId,
      details: { kind, because: ending.because, ...(node_id ? { node_id } : {}) },
    });
  }
  return live.map(toIssuedToken);
}

function toIssuedToken({ id, kind, name, node_id, expires_at }: Row): IssuedToken {
  return { id, kind, name, node_id, expires_at: expires_at?.toISOString() ?? null };
}
