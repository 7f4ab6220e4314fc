// Terminals over HTTP: create a token for one connection, show what became of each terminal, and close one.

import {
  closeTerminal,
  createConsoleToken,
  createTerminalToken,
  getTerminal,
  listMyTerminals,
  listTerminals,
  reportTerminalFailure,
} from "@holdfast/contracts/endpoints/terminals";
import { ApiError } from "@holdfast/contracts/errors";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { callerOf } from "../allocations/access.ts";
import { selectAllocation } from "../allocations/queries.ts";
import { accessOf, readAllocation, requireRow } from "../allocations/read.ts";
import type { ApiContext } from "../api/context.ts";
import { HiddenError } from "../api/hidden.ts";
import { pageStart, toPage } from "../api/page.ts";
import { type OrgCall, orgRoute, signedInRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import { withOrg } from "../database/connect.ts";
import { holdsScope, keyOf } from "../people/actor.ts";
import { counted, createToken, purposeOf, readForToken } from "./create-token.ts";
import { applyEvents } from "./events.ts";
import { consoleRefusalOf, type Place, refusalOf, selectConsolePlace, selectPlace } from "./place.ts";
import {
  CONSOLE,
  requestClose,
  type SessionRow,
  selectOwnOpen,
  selectSession,
  selectSessions,
  toMyTerminal,
  toTerminal,
} from "./queries.ts";
import { hasEnded } from "./state.ts";

export function terminalRoutes(api: ApiContext): void {
  const { limits, watch } = api.terminals;

  orgRoute(api, createTerminalToken, async (call) => {
    const { params, body, org, actor, tx, correlationId } = call;
    const caller = callerOf(call);
    const [seen, place, common] = await Promise.all([
      selectAllocation(tx, params.allocation_id, caller),
      selectPlace(tx, params.allocation_id),
      readForToken(api, { tx, actor, sessionId: body.session_id }),
    ]);
    const row = requireRow(seen, caller, "use");
    if (!place) throw new ApiError("not_found");
    const purpose = purposeOf(common, (session) => session.allocation_id === place.id);
    if (place.own_account && !caller.administers) throw counted(api, notForMembers(org.role));
    refuseUnusable(api, place, { purpose, correlationId });
    const byGrant = accessOf(caller, row) === "use" ? { granted_by_owner: row.owner_name } : {};
    const target = { allocation_id: place.id, lease_id: null, node_id: place.node_id };
    const name = `${place.username}@${place.node_name}`;
    return createToken(api, call, {
      common,
      target,
      name,
      details: { allocation_id: place.id, purpose, ...byGrant },
    });
  });

  orgRoute(api, createConsoleToken, async (call) => {
    const { params, body, org, actor, tx } = call;
    if (!holdsScope(actor, org.role, "terminals:use"))
      throw new ApiError("forbidden", { details: { needed: "terminals:use", role: org.role } });
    const [place, common] = await Promise.all([
      selectConsolePlace(tx, params.lease_id),
      readForToken(api, { tx, actor, sessionId: body.session_id }),
    ]);
    if (!place) throw new ApiError("not_found");
    const purpose = purposeOf(common, (session) => session.lease_id === place.id);
    const refusal = consoleRefusalOf(place, purpose);
    if (refusal) {
      const { reason, owner, message, nextStep } = refusal;
      const details = { reason, owner, lease: place.status, node: place.node_name };
      throw counted(api, new ApiError("terminal_token_mint_failed", { message, nextStep, details }));
    }
    if (place.node_id === null) throw new ApiError("not_found");
    const target = { allocation_id: null, lease_id: place.id, node_id: place.node_id };
    const name = `${CONSOLE}@${place.node_name}`;
    return createToken(api, call, { common, target, name, details: { lease_id: place.id, purpose } });
  });

  orgRoute(api, listTerminals, async (call) => {
    const { query, tx } = call;
    const viewer = { caller: callerOf(call), userKey: keyOf(call.actor) };
    const filter = {
      allocationId: query.allocation_id,
      leaseId: query.lease_id,
      nodeId: query.node_id,
      state: query.state,
      correlationId: query.correlation_id,
    };
    const before = pageStart(listTerminals, query.cursor);
    const rows = await selectSessions(tx, viewer, filter, { before, limit: query.limit });
    return toPage(listTerminals, rows, { limit: query.limit, idOf: (row) => row.id, toItem: toTerminal });
  });

  signedInRoute(api, listMyTerminals, async ({ actor }) => ({
    items: (await selectOwnOpen(api.system, keyOf(actor))).map(toMyTerminal),
    limit: limits.terminalsPerUser,
  }));

  orgRoute(api, getTerminal, async (call) => toTerminal(await readSession(call, call.params.terminal_id)), {
    waitFirst: async (call) => {
      const { params, query, org, actor, signal } = call;
      if (query.wait_seconds === 0) return;
      // Only what the caller can see may be waited for.
      const { id } = await withOrg(api.app, org.id, (tx) => readSession({ tx, actor, org }, params.terminal_id));
      await watch.ended(id, { waitMs: query.wait_seconds * 1000, signal });
    },
  });

  orgRoute(api, closeTerminal, async (call) => {
    const { params, tx, touched, afterCommit } = call;
    const session = await readSession(call, params.terminal_id);
    const { allocation_id, lease_id, state } = session;
    touched(targetOf(session), { ...(lease_id === null ? { allocation_id } : { lease_id }), state });
    if (!hasEnded(session.state)) {
      await requestClose(tx, session.id, "terminal_closed");
      // No gateway has claimed it, so none would report that it is closed.
      if (session.gateway_id === null) await applyEvents(tx, api.log, session.id, [unusedNow()]);
      afterCommit(() => watch.closing([session.id]));
    }
    return toTerminal(await readSession(call, session.id));
  });

  orgRoute(api, reportTerminalFailure, async (call) => {
    const { params, body, org, actor, tx, touched, afterCommit, correlationId } = call;
    const session = await readSession(call, params.terminal_id);
    if (session.user_key !== keyOf(actor)) throw notTheirs();
    const by = auditActor(actor, org.role);
    const failure = { type: "failed", at: new Date().toISOString(), code: body.code, ended: false } as const;
    // The client shows the correlation id of its connection, which need not be the terminal's.
    const event = { ...failure, detail: body.detail ?? null, correlation_id: correlationId };
    // The client has given up, so a shell that still starts would never be used.
    if (session.state === "opening") await requestClose(tx, session.id, body.code);
    const applied = await applyEvents(tx, api.log, session.id, [event], { by });
    touched(targetOf(session), { code: body.code, hop: terminalFailures[body.code].hop });
    afterCommit(() => {
      api.terminals.notice(applied);
      watch.closing([session.id]);
    });
    return undefined;
  });
}

function refuseUnusable(
  api: ApiContext,
  place: Place,
  { purpose, correlationId }: { purpose: "open" | "attach"; correlationId: string },
): void {
  const refusal = refusalOf(place, purpose);
  if (!refusal) return;
  api.terminals.refused(place, correlationId);
  const { reason, owner, message, nextStep } = refusal;
  const details = { reason, owner, allocation: place.status, node: place.node_name };
  throw counted(api, new ApiError("terminal_token_mint_failed", { message, nextStep, details }));
}

/** The caller's own terminal, or one on an allocation or a VM that the caller manages; any other is reported as not found. */
async function readSession(
  { tx, actor, org }: Pick<OrgCall<unknown>, "tx" | "actor" | "org">,
  id: string,
): Promise<SessionRow> {
  const session = await selectSession(tx, id);
  if (!session) throw new ApiError("not_found");
  const own = session.user_key === keyOf(actor);
  const caller = callerOf({ actor, org });
  if (session.allocation_id === null) {
    if (!own && !caller.administers) throw new HiddenError();
    return session;
  }
  const row = await readAllocation(tx, caller, session.allocation_id, "view");
  if (!own && accessOf(caller, row) !== "manage") throw new HiddenError();
  return session;
}

function unusedNow() {
  return { type: "unused", at: new Date().toISOString() } as const;
}

function targetOf({ id, username, node_name }: SessionRow) {
  return { type: "terminal", id, name: `${username}@${node_name}` };
}

/** A shell of the agent's own account can act as the node, and as the server where that runs under the same account. */
function notForMembers(role: string): ApiError {
  return new ApiError("terminal_token_mint_failed", {
    message:
      "The allocation is the agent's own account, which can read the node's keys: your role does not include it.",
    nextStep:
      "Ask an administrator to open it, or to run the agent as root, so that each allocation gets its own user.",
    details: {
      reason: "role_insufficient",
      owner: "tenant",
      role,
      needed: "to be an administrator of the organization",
    },
  });
}

function notTheirs(): ApiError {
  return new ApiError("forbidden", {
    message: "The terminal was opened by somebody else.",
    details: { needed: "to have opened it" },
  });
}
