// Creates a token for one connection, and the record of a new terminal with it; the same at an allocation and at a VM.

import type { AnswerOf, BodyOf } from "@holdfast/contracts/endpoint";
import type { createConsoleToken, createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import type { OrgCall } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { presentGateways } from "../internal-api/gateways.ts";
import { makeSecret } from "../mechanisms/secrets.ts";
import { type Actor, keyOf } from "../people/actor.ts";
import {
  countUnused,
  insertSession,
  insertToken,
  type NewSession,
  type SessionRow,
  selectSession,
} from "./queries.ts";
import { hasEnded } from "./state.ts";

type Call = OrgCall<typeof createTerminalToken> | OrgCall<typeof createConsoleToken>;

/** What every token depends on. */
export type ForToken = {
  userKey: string;
  /** The terminal that the request names. */
  named: { session: SessionRow | undefined } | undefined;
  unused: { unused: number; wait: number };
  gateways: Awaited<ReturnType<typeof presentGateways>>;
};

export async function readForToken(
  api: ApiContext,
  { tx, actor, sessionId }: { tx: Tx; actor: Actor; sessionId: string | undefined },
): Promise<ForToken> {
  const userKey = keyOf(actor);
  const [session, unused, gateways] = await Promise.all([
    sessionId === undefined ? undefined : selectSession(tx, sessionId),
    countUnused(tx, userKey),
    presentGateways(api.system),
  ]);
  return { userKey, named: sessionId === undefined ? undefined : { session }, unused, gateways };
}

/** One attaches to a terminal of one's own at the same place; any other is reported as unknown. */
export function purposeOf(
  { named, userKey }: ForToken,
  isThere: (session: SessionRow) => boolean,
): "open" | "attach" {
  if (!named) return "open";
  const { session } = named;
  const isAttachable =
    session &&
    isThere(session) &&
    session.user_key === userKey &&
    !hasEnded(session.state) &&
    session.close_code === null;
  if (!isAttachable) throw new ApiError("terminal_session_unknown");
  return "attach";
}

export async function createToken(
  api: ApiContext,
  { body, org, actor, tx, touched, afterCommit, correlationId }: Call,
  {
    common,
    target,
    name,
    details,
  }: {
    common: ForToken;
    target: Pick<NewSession, "allocation_id" | "lease_id" | "node_id">;
    /** Of the terminal, for the audit. */
    name: string;
    details: Record<string, unknown>;
  },
): Promise<AnswerOf<typeof createTerminalToken>> {
  const { limits, watch } = api.terminals;
  const { userKey, gateways } = common;
  refuseTooMany(common.unused, limits.terminalsPerUser);
  const existing = common.named?.session;
  const gateway = gateways.find(({ id }) => id === existing?.gateway_id) ?? gateways[0];
  if (!gateway) throw counted(api, new ApiError("terminal_gateway_missing"));
  const sessionId = existing?.id ?? uuidv7();
  const { secret, hash } = makeSecret("terminal");
  const signInId = signInOf(actor);
  const session: NewSession = {
    ...{ ...target, org_id: org.id, user_key: userKey, correlation_id: correlationId, sign_in_id: signInId },
    ...auditActor(actor, org.role),
    openSeconds: limits.terminalOpenSeconds,
    longestSeconds: limits.terminalLongestSeconds,
    detachedSeconds: limits.terminalDetachedSeconds,
  };
  // Pipelined: both statements take one round trip.
  const inserted = existing ? undefined : insertSession(tx, sessionId, session);
  const offset = (body as BodyOf<typeof createTerminalToken>).offset ?? null;
  const purpose = existing ? "attach" : "open";
  const token = { orgId: org.id, sessionId, hash, userKey, signInId, purpose, offset, correlationId } as const;
  const [{ expires_at }] = await Promise.all([insertToken(tx, token), inserted]);
  touched({ type: "terminal", id: sessionId, name }, details);
  afterCommit(() => watch.changed(sessionId));
  return {
    token: secret,
    url: gateway.terminal_url,
    session_id: sessionId,
    correlation_id: correlationId,
    expires_at: expires_at.toISOString(),
    deadline_seconds: limits.terminalOpenSeconds,
  };
}

/** One person may have as many unused tokens as open terminals. */
function refuseTooMany({ unused, wait }: { unused: number; wait: number }, most: number): void {
  if (unused < most) return;
  throw new ApiError("rate_limit_exceeded", {
    message: `You have ${unused} unused terminal tokens, which is the maximum per person or token.`,
    nextStep: "Use one of them, or wait until the first expires.",
    headers: { "retry-after": String(Math.max(1, wait)) },
    details: { reason: "unused_tokens", limit: most, retry_after_seconds: Math.max(1, wait) },
  });
}

/** The browser session: the terminal closes when it ends. */
function signInOf(actor: Actor): string | null {
  return actor.type === "user" ? actor.sessionId : null;
}

export function counted(api: ApiContext, error: ApiError): ApiError {
  api.terminals.metrics.failed(error.code);
  return error;
}
