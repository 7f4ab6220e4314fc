// Browser sessions: begun at sign-in, listed, ended. The row of an ended session is kept for a day,
// because terminals/access.ts closes the terminals that it opened.

import type { Session } from "@holdfast/contracts/endpoints/sessions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Queryable } from "../database/connect.ts";
import { makeSecret } from "../mechanisms/secrets.ts";
import { terminalIsLive } from "../terminals/state.ts";

/** Sessions end this long after the last request, and in any case at their expiry. */
export const SESSION_IDLE = "24 hours";
export const SESSION_LIFETIME_SECONDS = 14 * 24 * 3600;

/** For a row `s`: whether a cookie with its secret is accepted. */
export const isLive = (db: Queryable) => db`(
  s.ended_at IS NULL AND s.expires_at > now() AND s.last_seen_at > now() - ${SESSION_IDLE}::interval)`;

/** Long enough for every browser; a longer one is cut. */
const USER_AGENT_LENGTH = 400;

/** Returns the secret, which only the cookie may carry. */
export async function startSession(
  db: Queryable,
  userId: string,
  from: { address: string; userAgent: string | undefined },
): Promise<string> {
  const { secret, hash } = makeSecret("session");
  const userAgent = from.userAgent?.slice(0, USER_AGENT_LENGTH) ?? null;
  await db`
    INSERT INTO sessions (id, user_id, secret_hash, expires_at, address, last_address, user_agent)
    VALUES (${uuidv7()}, ${userId}, ${hash}, now() + ${SESSION_LIFETIME_SECONDS} * interval '1 second',
            ${from.address}, ${from.address}, ${userAgent})`;
  return secret;
}

type SessionRow = {
  id: string;
  created_at: Date;
  last_seen_at: Date;
  expires_at: Date;
  address: string | null;
  last_address: string | null;
  user_agent: string | null;
  terminals: number;
};

/** The sessions that are accepted, the last used first. */
export async function selectSessions(db: Queryable, userId: string): Promise<SessionRow[]> {
  return db<SessionRow[]>`
    SELECT s.id, s.created_at, s.last_seen_at, s.expires_at, s.address, s.last_address, s.user_agent,
      (SELECT count(*)::integer FROM terminal_sessions t
       WHERE t.sign_in_id = s.id AND ${terminalIsLive("t")}) AS terminals
    FROM sessions s WHERE s.user_id = ${userId} AND ${isLive(db)}
    ORDER BY s.last_seen_at DESC, s.id DESC`;
}

export function toSession(row: SessionRow, current: string | undefined): Session {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    last_seen_at: row.last_seen_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    current: row.id === current,
  };
}

/** False if the person has no such session, or it has ended. */
export async function endSession(db: Queryable, userId: string, sessionId: string): Promise<boolean> {
  const ended = await db`
    UPDATE sessions s SET ended_at = now() WHERE s.id = ${sessionId} AND s.user_id = ${userId} AND ${isLive(db)}
    RETURNING s.id`;
  return ended.length === 1;
}

export async function endSessionsOf(db: Queryable, userId: string): Promise<number> {
  const ended = await db`
    UPDATE sessions s SET ended_at = now() WHERE s.user_id = ${userId} AND ${isLive(db)} RETURNING s.id`;
  return ended.length;
}
