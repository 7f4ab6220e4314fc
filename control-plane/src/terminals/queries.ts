// SQL of terminals and their tokens.

import type { MyTerminal, TerminalSession, TerminalState } from "@holdfast/contracts/endpoints/terminals";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import { presentReason } from "@holdfast/contracts/reasons/catalogue";
import { type TerminalFailureCode, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { TOKEN_SECONDS } from "@holdfast/contracts/terminal/deadlines";
import { uuidv7 } from "@holdfast/kit/uuid";
import { type Caller, callerSql, reaches } from "../allocations/access.ts";
import type { AuditActor } from "../audit/record.ts";
import type { Queryable, Sql, Tx } from "../database/connect.ts";
import type { Revision } from "../mechanisms/awaiting.ts";
import { accessIsLost, lostAccessCode, signInEnded } from "./access.ts";
import type { Exit, Failure, Lifecycle } from "./lifecycle.ts";
import { terminalIsLive } from "./state.ts";

const sessionIsLive = terminalIsLive("s");
const rowIsLive = terminalIsLive();

export type SessionRow = {
  id: string;
  org_id: string;
  /** Either this or a lease. */
  allocation_id: string | null;
  lease_id: string | null;
  /** Of the lease, at the moment. */
  vm_id: string | null;
  node_id: string;
  username: string;
  node_name: string;
  state: TerminalState;
  user_key: string;
  actor_type: AuditActor["actor_type"];
  actor_id: string | null;
  actor_name: string;
  role: string;
  correlation_id: string;
  chain: Lifecycle["chain"];
  failure: (Omit<Failure, "correlation_id"> & Partial<Pick<Failure, "correlation_id">>) | null;
  task_id: string | null;
  gateway_id: string | null;
  attached: boolean;
  attachment_at: Date | null;
  /** The latest time at which it ends by itself if no client attaches. */
  ends_at: Date;
  created_at: Date;
  close_code: string | null;
  closed_at: Date | null;
  close_reason: string | null;
  exit: Exit | null;
  bytes_in: string | null;
  bytes_out: string | null;
};

/** In place of a user's name. */
export const CONSOLE = "console";

const columns = (db: Queryable) => db`
  s.id, s.org_id, s.allocation_id, s.lease_id, l.vm_id, s.node_id, coalesce(a.username, ${CONSOLE}) AS username, n.name AS node_name, s.state, s.user_key, s.actor_type,
  s.actor_id, s.actor_name, s.role, s.correlation_id, s.chain, s.failure, s.task_id, s.gateway_id, s.attached,
  s.attachment_at, ${endsAt(db)} AS ends_at, s.created_at, s.close_code, s.closed_at, s.close_reason, s.exit, s.bytes_in, s.bytes_out`;

/** An opening terminal ends at its deadline, a detached one when its time without a client is over. */
const endsAt = (db: Queryable) => db`
  CASE WHEN s.state = 'opening' THEN s.opening_until
    WHEN s.attached THEN s.ends_by
    ELSE least(s.ends_by, coalesce(s.attachment_at, s.heard_at) + s.detached_seconds * interval '1 second') END`;

const joined = (db: Queryable) => db`
  terminal_sessions s JOIN nodes n ON n.id = s.node_id LEFT JOIN allocations a ON a.id = s.allocation_id
  LEFT JOIN vm_leases l ON l.id = s.lease_id`;

export function toTerminal(row: SessionRow): TerminalSession {
  const failure = toFailure(row);
  return {
    id: row.id,
    allocation_id: row.allocation_id,
    lease_id: row.lease_id,
    username: row.username,
    node_id: row.node_id,
    node_name: row.node_name,
    state: row.state,
    chain: toChain(row, failure),
    failure,
    task_id: row.task_id,
    opened_by: row.actor_name,
    correlation_id: row.correlation_id,
    created_at: row.created_at.toISOString(),
    attached: row.attached,
    detached_at: row.state === "open" && !row.attached ? (row.attachment_at?.toISOString() ?? null) : null,
    ends_at: row.closed_at === null ? row.ends_at.toISOString() : null,
    ending: row.closed_at === null && row.close_code !== null,
    closed_at: row.closed_at?.toISOString() ?? null,
    exit: row.exit,
  };
}

/** Failures stored before each had its own correlation id use the terminal's. */
function toFailure({ failure, correlation_id }: SessionRow): TerminalSession["failure"] {
  if (!failure) return null;
  const { hop, owner } = terminalFailures[failure.code];
  return { correlation_id, ...failure, ...presentReason(failure.code), hop, owner };
}

function toChain(
  { chain, correlation_id, state }: SessionRow,
  failure: TerminalSession["failure"],
): TerminalSession["chain"] {
  const steps = Object.entries(chain).map(([step, at]) => [step, { at, correlation_id }]);
  if (state === "failed" && failure) {
    steps.push(["failed", { at: failure.at, correlation_id: failure.correlation_id }]);
  }
  return Object.fromEntries(steps);
}

export type NewSession = Pick<
  SessionRow,
  | "org_id"
  | "allocation_id"
  | "lease_id"
  | "node_id"
  | "user_key"
  | "correlation_id"
  | "actor_type"
  | "actor_id"
  | "actor_name"
  | "role"
> & { sign_in_id: string | null; openSeconds: number; longestSeconds: number; detachedSeconds: number };

/** The time to open begins when the token is used, so the token's validity is added. */
export async function insertSession(tx: Tx, id: string, session: NewSession): Promise<void> {
  const { openSeconds, longestSeconds, detachedSeconds: detached_seconds, ...row } = session;
  const chain = { token_ready: new Date().toISOString() };
  await tx`
    INSERT INTO terminal_sessions (id, org_id, allocation_id, lease_id, node_id, user_key, correlation_id, actor_type, actor_id,
      actor_name, role, sign_in_id, chain, detached_seconds, opening_until, ends_by)
    VALUES (${id}, ${row.org_id}, ${row.allocation_id}, ${row.lease_id}, ${row.node_id}, ${row.user_key}, ${row.correlation_id},
      ${row.actor_type}, ${row.actor_id}, ${row.actor_name}, ${row.role}, ${row.sign_in_id}, ${tx.json(chain)}, ${detached_seconds},
      now() + ${TOKEN_SECONDS + openSeconds} * interval '1 second', now() + ${longestSeconds} * interval '1 second')`;
}

export type NewToken = {
  orgId: string;
  sessionId: string;
  hash: Buffer;
  userKey: string;
  /** The browser session of the caller; null for a token or the local operator. */
  signInId: string | null;
  purpose: "open" | "attach";
  offset: number | null;
  correlationId: string;
};

export async function insertToken(tx: Tx, token: NewToken): Promise<{ expires_at: Date }> {
  const [row] = await tx<{ expires_at: Date }[]>`
    INSERT INTO terminal_tokens (id, org_id, session_id, secret_hash, user_key, sign_in_id, purpose, from_offset,
      correlation_id, expires_at)
    VALUES (${uuidv7()}, ${token.orgId}, ${token.sessionId}, ${token.hash}, ${token.userKey}, ${token.signInId},
      ${token.purpose}, ${token.offset}, ${token.correlationId}, now() + ${TOKEN_SECONDS} * interval '1 second')
    RETURNING expires_at`;
  if (!row) throw new Error("a token was inserted and is not there");
  return row;
}

/** The number of unused tokens that are still valid, and the seconds until the first of them expires. */
export async function countUnused(tx: Tx, userKey: string): Promise<{ unused: number; wait: number }> {
  const [row] = await tx<{ unused: number; wait: number }[]>`
    SELECT count(*)::integer AS unused,
      coalesce(ceil(extract(epoch FROM min(expires_at) - now())), 0)::integer AS wait
    FROM terminal_tokens WHERE user_key = ${userKey} AND used_at IS NULL AND expires_at > now()`;
  return row ?? { unused: 0, wait: 0 };
}

export async function selectSession(db: Queryable, id: string): Promise<SessionRow | undefined> {
  const [row] = await db<SessionRow[]>`SELECT ${columns(db)} FROM ${joined(db)} WHERE s.id = ${id}`;
  return row;
}

export async function lockSession(tx: Tx, id: string): Promise<SessionRow | undefined> {
  const [row] = await tx<SessionRow[]>`
    SELECT ${columns(tx)} FROM ${joined(tx)} WHERE s.id = ${id} FOR NO KEY UPDATE OF s`;
  return row;
}

export type SessionFilter = {
  allocationId: string | undefined;
  leaseId: string | undefined;
  nodeId: string | undefined;
  state: TerminalState | undefined;
  correlationId: string | undefined;
};

/** The caller's own terminals on allocations that the caller can still see, and all on those that the caller manages. */
const isSeenBy = (tx: Tx, { caller, userKey }: Viewer) => {
  const who = callerSql(tx, caller);
  return tx`(${reaches(tx, who, "manage")} OR (s.user_key = ${userKey} AND (s.lease_id IS NOT NULL OR ${reaches(tx, who, "view")})))`;
};

export type Viewer = { caller: Caller; userKey: string };

export async function selectSessions(
  tx: Tx,
  viewer: Viewer,
  filter: SessionFilter,
  page: { before: string; limit: number },
): Promise<SessionRow[]> {
  return tx<SessionRow[]>`
    SELECT ${columns(tx)} FROM ${joined(tx)}
    WHERE s.id < ${page.before} AND ${isSeenBy(tx, viewer)}
      ${filter.allocationId === undefined ? tx`` : tx`AND s.allocation_id = ${filter.allocationId}`}
      ${filter.leaseId === undefined ? tx`` : tx`AND s.lease_id = ${filter.leaseId}`}
      ${filter.nodeId === undefined ? tx`` : tx`AND s.node_id = ${filter.nodeId}`}
      ${filter.state === undefined ? tx`` : tx`AND s.state = ${filter.state}`}
      ${filter.correlationId === undefined ? tx`` : tx`AND s.id IN (${withCorrelationId(tx, filter.correlationId)})`}
    ORDER BY s.id DESC LIMIT ${page.limit + 1}`;
}

/** Matches the id of the terminal, of any connection to it, and of its failure. */
const withCorrelationId = (tx: Tx, id: string) => tx`
  SELECT id FROM terminal_sessions WHERE correlation_id = ${id}
  UNION ALL SELECT id FROM terminal_sessions WHERE failure ->> 'correlation_id' = ${id}
  UNION ALL SELECT session_id FROM terminal_tokens WHERE correlation_id = ${id}`;

type OwnRow = SessionRow & { org_name: string };

/** The terminals that count towards the limit of one person or token: claimed by a gateway and not ended. */
export async function selectOwnOpen(system: Sql, userKey: string): Promise<OwnRow[]> {
  return system<OwnRow[]>`
    SELECT ${columns(system)}, o.name AS org_name FROM ${joined(system)} JOIN organizations o ON o.id = s.org_id
    WHERE s.user_key = ${userKey} AND ${sessionIsLive} AND s.gateway_id IS NOT NULL
    ORDER BY s.id DESC`;
}

export function toMyTerminal(row: OwnRow): MyTerminal {
  return { ...toTerminal(row), organization: { id: row.org_id, name: row.org_name } };
}

/** For requests that wait for the end of a terminal; other changes are not awaited, so the revision is constant. */
export async function selectEnds(sql: Queryable, ids: readonly string[]): Promise<Revision[]> {
  return sql<Revision[]>`
    SELECT id, 0 AS revision, closed_at IS NOT NULL AS ended FROM terminal_sessions WHERE id = ANY (${[...ids]}::uuid[])`;
}

export function lifecycleOf(row: SessionRow): Lifecycle {
  return {
    state: row.state,
    chain: row.chain,
    failure: row.failure && { correlation_id: row.correlation_id, ...row.failure },
    attached: row.attached,
    attachmentAt: row.attachment_at?.toISOString() ?? null,
    closedAt: row.closed_at?.toISOString() ?? null,
    closeReason: row.close_reason,
    exit: row.exit,
    bytesIn: row.bytes_in === null ? null : Number(row.bytes_in),
    bytesOut: row.bytes_out === null ? null : Number(row.bytes_out),
  };
}

/** The transaction must have locked the row. */
export async function storeLifecycle(tx: Tx, id: string, lifecycle: Lifecycle): Promise<void> {
  await tx`
    UPDATE terminal_sessions SET state = ${lifecycle.state}, chain = ${tx.json(lifecycle.chain)},
      failure = ${lifecycle.failure === null ? null : tx.json(lifecycle.failure)},
      attached = ${lifecycle.attached}, attachment_at = ${lifecycle.attachmentAt}, heard_at = now(),
      closed_at = ${lifecycle.closedAt}, close_reason = ${lifecycle.closeReason},
      exit = ${lifecycle.exit === null ? null : tx.json(lifecycle.exit)}, bytes_in = ${lifecycle.bytesIn}, bytes_out = ${lifecycle.bytesOut}
    WHERE id = ${id}`;
}

/** Repeated requests keep the first reason. */
export async function requestClose(tx: Tx, id: string, code: string): Promise<void> {
  await tx`
    UPDATE terminal_sessions SET close_code = coalesce(close_code, ${code}),
      close_asked_at = coalesce(close_asked_at, now())
    WHERE id = ${id} AND ${rowIsLive}`;
}

export type Claimed = {
  id: string;
  org_id: string;
  allocation_id: string | null;
  node_id: string;
  user_key: string;
  correlation_id: string;
  purpose: "open" | "attach";
  from_offset: string | null;
  asked_at: Date;
  of_user: number;
  on_node: number;
};

/**
 * Consumes a token. Of two concurrent claims, the second waits for the row lock and then finds the token used. The time to
 * open begins here, and the claiming gateway reports for the session from now on; for a shell that runs, only once it has
 * the terminal (`bindToGateway`). Returns `used_up` for a valid token whose terminal may no longer be used, and undefined
 * for an invalid token.
 */
export async function claimToken(
  system: Sql,
  claim: { hash: Buffer; gatewayId: string; openSeconds: number },
): Promise<Claimed | "used_up" | undefined> {
  const [row] = await system<(Claimed | { id: null })[]>`
    WITH used AS (
      UPDATE terminal_tokens k SET used_at = now()
      WHERE secret_hash = ${claim.hash} AND used_at IS NULL AND expires_at > now() AND NOT ${signInEnded(system, "k")}
      RETURNING session_id, user_key, sign_in_id, correlation_id, purpose, from_offset, created_at AS asked_at
    ), bound AS (
      UPDATE terminal_sessions s SET heard_at = now(), sign_in_id = used.sign_in_id,
        gateway_id = CASE used.purpose WHEN 'open' THEN ${claim.gatewayId}::uuid ELSE s.gateway_id END,
        opening_until =
        CASE used.purpose WHEN 'open' THEN now() + ${claim.openSeconds} * interval '1 second' ELSE s.opening_until END
      FROM used
      WHERE s.id = used.session_id AND ${sessionIsLive} AND s.close_code IS NULL
        AND NOT ${accessIsLost(system)}
      RETURNING s.id, s.org_id, s.allocation_id, s.node_id
    )
    SELECT bound.*, used.user_key, used.correlation_id, used.purpose, used.from_offset, used.asked_at,
      elsewhere.of_user, elsewhere.on_node
    FROM used LEFT JOIN bound ON true LEFT JOIN LATERAL (
      SELECT count(*) FILTER (WHERE s.user_key = used.user_key)::integer AS of_user,
        count(*) FILTER (WHERE s.node_id = bound.node_id)::integer AS on_node
      FROM terminal_sessions s
      WHERE (s.user_key = used.user_key OR s.node_id = bound.node_id) AND ${sessionIsLive}
        AND s.gateway_id <> ${claim.gatewayId}) AS elsewhere ON true`;
  return row?.id === null ? "used_up" : row;
}

/** Details of a token that was not accepted. */
export type TokenFacts = {
  session_id: string;
  correlation_id: string;
  purpose: "open" | "attach";
  used: boolean;
  expired: boolean;
  sign_in_ended: boolean;
  state: TerminalState;
  close_code: string | null;
  lost: TerminalFailureCode | null;
};

export async function selectTokenFacts(system: Sql, hash: Buffer): Promise<TokenFacts | undefined> {
  const [row] = await system<TokenFacts[]>`
    SELECT k.session_id, k.correlation_id, k.purpose, k.used_at IS NOT NULL AS used, k.expires_at <= now() AS expired,
      ${signInEnded(system, "k")} AS sign_in_ended, s.state, s.close_code, ${lostAccessCode(system)} AS lost
    FROM terminal_tokens k JOIN terminal_sessions s ON s.id = k.session_id WHERE k.secret_hash = ${hash}`;
  return row;
}

/**
 * Makes the gateway that received the node's stream, or a client of a running shell, the one that reports for the session. A
 * client that was attached through another gateway is now detached; a gateway that was killed could not report that.
 */
export async function bindToGateway(system: Sql, id: string, gatewayId: string): Promise<void> {
  await system`
    UPDATE terminal_sessions SET gateway_id = ${gatewayId}, heard_at = now(),
      attached = attached AND gateway_id IS NOT DISTINCT FROM ${gatewayId},
      attachment_at = CASE WHEN attached AND gateway_id IS DISTINCT FROM ${gatewayId} THEN now() ELSE attachment_at END
    WHERE id = ${id} AND ${rowIsLive}`;
}

export type Opening = SessionRow & {
  /** Milliseconds until the deadline. */
  left_ms: number;
  /** Seconds since the node's last heartbeat; null if there was none. */
  silent_seconds: number | null;
  /** Seconds since its connection has ended; null if it has not. */
  disconnected_seconds: number | null;
};

export async function selectOpening(system: Sql, id: string): Promise<Opening | undefined> {
  const [row] = await system<Opening[]>`
    SELECT ${columns(system)}, (extract(epoch FROM s.opening_until - now()) * 1000)::float8 AS left_ms,
      extract(epoch FROM now() - p.heartbeat_at)::float8 AS silent_seconds,
      extract(epoch FROM now() - p.disconnected_at)::float8 AS disconnected_seconds
    FROM ${joined(system)} LEFT JOIN node_presence p ON p.node_id = s.node_id WHERE s.id = ${id}`;
  return row;
}

export async function noteTask(system: Sql, id: string, task: { id: string; sentAt: string }): Promise<void> {
  await system`
    UPDATE terminal_sessions
    SET task_id = ${task.id}, chain = jsonb_build_object('terminal_open_sent', ${task.sentAt}::text) || chain
    WHERE id = ${id}`;
}

/** The terminals among `ids` that are to close, whatever their state here; without ids, all live ones. */
export async function selectClosing(system: Sql, ids: readonly string[] | null): Promise<ServiceNews[]> {
  const rows = await system<{ id: string; close_code: string }[]>`
    SELECT id, close_code FROM terminal_sessions
    WHERE close_code IS NOT NULL
      AND ${ids === null ? system`${rowIsLive}` : system`id = ANY(${ids as string[]}::uuid[])`}
    ORDER BY id LIMIT 1000`;
  return rows.map((row) => ({ type: "close_terminal", session_id: row.id, code: row.close_code }));
}
