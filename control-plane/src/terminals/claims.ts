// Explains and records why a terminal token was not accepted. The client's error frame carries a correlation id, under
// which the refusal is found in the audit trail and, if the token existed, on its terminal.

import { ApiError } from "@holdfast/contracts/errors";
import type { TerminalEvent } from "@holdfast/contracts/internal/endpoints";
import { isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { ApiContext } from "../api/context.ts";
import { actorOf, auditActor, recordAudit } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import { takeAttempt } from "../mechanisms/rate-limit.ts";
import { applyEvents } from "./events.ts";
import { selectSession, selectTokenFacts, type TokenFacts } from "./queries.ts";
import { hasEnded } from "./state.ts";

type Why = { code: TerminalFailureCode; detail: string | null };

/** For a used token, nothing else is disclosed: its terminal may belong to another person. */
function whyRefused(token: Omit<TokenFacts, "session_id" | "correlation_id" | "purpose"> | undefined): Why {
  const refused = (detail: string): Why => ({ code: "terminal_token_refused", detail });
  if (!token) return refused("Terminal token not found.");
  if (token.used) return refused("The terminal token has already been used.");
  if (token.expired) return refused("The terminal token has expired: it is valid for one minute.");
  if (token.close_code !== null && isTerminalFailure(token.close_code))
    return { code: token.close_code, detail: null };
  if (token.sign_in_ended) return { code: "terminal_signed_out", detail: null };
  if (token.lost !== null) return { code: token.lost, detail: null };
  if (hasEnded(token.state)) return { code: "terminal_session_unknown", detail: null };
  return refused("The terminal token is no longer accepted.");
}

/** Records the refusal and returns it with its correlation id. `wasGood`: the token was valid until this claim used it. */
export async function refuseClaim(
  { system, log, terminals }: ApiContext,
  claim: { hash: Buffer; correlationId: string; wasGood: boolean },
): Promise<ApiError> {
  const found = await selectTokenFacts(system, claim.hash);
  const token = found && { ...found, used: found.used && !claim.wasGood };
  const { code, detail } = whyRefused(token);
  const correlationId = token?.correlation_id ?? claim.correlationId;
  if (code === "terminal_token_refused") terminals.metrics.failed(code);
  if (await isWorthRecording(system, token?.session_id ?? "unknown")) {
    if (token) await recordOnTerminal(system, log, token, { code, detail });
    else await recordUnknownToken(system, log, correlationId);
  }
  return new ApiError("terminal_token_refused", {
    ...(detail === null ? {} : { message: detail }),
    details: { reason: code, correlation_id: correlationId },
  });
}

type Failed = Extract<TerminalEvent, { type: "failed" }>;

/** Records a claim that got no response from the api; the gateway reports it when the api is reachable again. */
export async function recordUnclaimed(
  { system, log, terminals }: ApiContext,
  { hash, failed }: { hash: Buffer; failed: Failed },
): Promise<string | undefined> {
  const token = await selectTokenFacts(system, hash);
  if (!token) {
    if (await isWorthRecording(system, "unknown")) await recordUnknownToken(system, log, failed.correlation_id);
    return undefined;
  }
  const applied = await system.begin((tx) => applyEvents(tx, log, token.session_id, [failed]));
  terminals.notice(applied);
  return token.session_id;
}

/** An unused token that is no longer accepted fails the terminal that waits for it; a used one changes nothing. */
async function recordOnTerminal(system: Sql, log: ApiContext["log"], token: TokenFacts, why: Why): Promise<void> {
  const { session_id, correlation_id } = token;
  const failed: Failed = { type: "failed", at: new Date().toISOString(), ...why, correlation_id, ended: false };
  const applied = token.used ? undefined : await system.begin((tx) => applyEvents(tx, log, session_id, [failed]));
  if (applied && applied.notes.length > 0) return;
  const session = await selectSession(system, session_id);
  if (!session) return;
  await recordAudit(system, log, {
    orgId: session.org_id,
    by: actorOf(session),
    action: token.purpose === "open" ? "terminal.open" : "terminal.attach",
    target: { type: "terminal", id: session.id, name: `${session.username}@${session.node_name}` },
    result: "denied",
    reason: why.code,
    correlationId: correlation_id,
  });
}

/** An unknown token belongs to no organization: its audit event has none either. */
function recordUnknownToken(system: Sql, log: ApiContext["log"], correlationId: string): Promise<void> {
  return recordAudit(system, log, {
    orgId: null,
    by: auditActor(undefined, "none"),
    action: "terminal.open",
    target: { type: "terminal" },
    result: "denied",
    reason: "terminal_token_refused",
    correlationId,
  });
}

/** Limits how much a client with used or invented tokens can write into the audit. */
const recorded = { attempts: 20, windowSeconds: 60 * 60 };

async function isWorthRecording(system: Sql, sessionId: string): Promise<boolean> {
  return takeAttempt(system, recorded, "terminal-token", sessionId).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError) return false;
      throw error;
    },
  );
}
