// Signs a person out everywhere: after a new password, or on request. Sessions end, terminals close, and on request the
// tokens that the person created in all organizations are revoked too.

import type { SignedOut } from "@holdfast/contracts/endpoints/sessions";
import type { Log } from "@holdfast/service/log";
import type { Tx } from "../database/connect.ts";
import { endLinksTo } from "../links/create.ts";
import { terminalIsLive } from "../terminals/state.ts";
import { endIssued } from "../tokens/issued.ts";
import { forgetPlaces } from "./attempts.ts";
import { setPassword } from "./queries.ts";
import { endSessionsOf } from "./sessions.ts";

type SignOut = {
  user: { id: string; email: string };
  revokeTokens: boolean;
  /** The audit action that this is part of. */
  because: string;
  correlationId: string;
  log: Log;
};

/** As the system role. `closing` are the terminals to announce after the commit. */
export async function signOutEverywhere(
  tx: Tx,
  { user, revokeTokens, because, correlationId, log }: SignOut,
): Promise<{ signedOut: SignedOut; closing: string[] }> {
  const sessions = await endSessionsOf(tx, user.id);
  const closing = await closeTerminalsOf(tx, user.id);
  const by = { actor_type: "user", actor_id: user.id, actor_name: user.email, role: "none" } as const;
  const tokens = revokeTokens ? await endIssued(tx, { person: user.id }, { by, correlationId, log, because }) : [];
  return { signedOut: { sessions, terminals: closing.length, tokens }, closing };
}

/** Sets the password, forgets known devices and networks, revokes links, and signs the person out everywhere. */
export async function replacePassword(tx: Tx, change: SignOut & { passwordHash: string }) {
  await setPassword(tx, change.user.id, change.passwordHash);
  await forgetPlaces(tx, change.user.id);
  await endLinksTo(tx, change.user.id);
  return signOutEverywhere(tx, change);
}

/** For the audit. */
export function countsOf({ sessions, terminals, tokens }: SignedOut): Record<string, number> {
  return { sessions_ended: sessions, terminals_closed: terminals, tokens_ended: tokens.length };
}

/** Also those opened with an API token of theirs, which can open another only while it is not revoked. */
async function closeTerminalsOf(tx: Tx, userId: string): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    UPDATE terminal_sessions SET close_code = 'terminal_signed_out', close_asked_at = now()
    WHERE ${terminalIsLive()} AND close_code IS NULL
      AND ((actor_type = 'user' AND actor_id = ${userId})
        OR (actor_type = 'token' AND actor_id IN (SELECT id FROM api_tokens WHERE created_by = ${userId})))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
