// What a gateway asks and tells about terminals, on the internal listener.

import { ApiError } from "@holdfast/contracts/errors";
import {
  admitNodeStream,
  claimTerminalToken,
  openTerminal,
  reportTerminalEvents,
} from "@holdfast/contracts/service-endpoints";
import type { ApiContext } from "../api/context.ts";
import { actorOf, recordAudit } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import { isRevoked } from "../nodes/directory.ts";
import { identityRefusal } from "../nodes/identity-refusal.ts";
import { takeAttempt } from "../people/rate-limit.ts";
import { hashSecret } from "../people/secrets.ts";
import { type ServiceApi, serviceRoute } from "../services/route.ts";
import { applyEvents } from "./events.ts";
import { grantOfSession, grantOfToken } from "./grants.ts";
import { openOnNode } from "./open-on-node.ts";
import { bindToGateway, claimToken, selectSession, sessionOfToken } from "./queries.ts";
import { hasEnded } from "./state.ts";

export function terminalServiceRoutes(serviceApi: ServiceApi, api: ApiContext): void {
  const { system, log, terminals } = api;

  serviceRoute(serviceApi, claimTerminalToken, async ({ body, service }) => {
    const hash = hashSecret(body.token);
    const openSeconds = terminals.limits.terminalOpenSeconds;
    const claimed = await claimToken(system, { hash, gatewayId: service.instanceId, openSeconds });
    if (claimed) return grantOfToken(claimed, terminals.limits);
    terminals.metrics.failed("terminal_token_refused");
    await auditRefusedToken(api, hash);
    throw new ApiError("terminal_token_refused");
  });

  serviceRoute(serviceApi, openTerminal, ({ params, body, signal }) => {
    const options = {
      ...{ system, tasks: api.tasks, log },
      staleAfterSeconds: api.nodes.staleAfterSeconds,
      detachedSeconds: terminals.limits.terminalDetachedSeconds,
      onSent: terminals.watch.changed,
    };
    return openOnNode(options, params.session_id, { cols: body.cols, rows: body.rows }, signal);
  });

  serviceRoute(serviceApi, reportTerminalEvents, async ({ params, body }) => {
    const applied = await system.begin((tx) => applyEvents(tx, log, params.session_id, body.events));
    if (!applied) throw new ApiError("terminal_session_unknown");
    for (const note of applied.notes) terminals.metrics.note(note);
    terminals.watch.changed(params.session_id);
    return undefined;
  });

  serviceRoute(serviceApi, admitNodeStream, async ({ params, body, service }) => {
    const [session, standing] = await Promise.all([
      selectSession(system, params.session_id),
      api.nodes.directory.standing(body.node_id),
    ]);
    if (!standing || isRevoked(standing, body.serial.toLowerCase())) throw identityRefusal(standing);
    const wanted = session && !hasEnded(session.state) && session.close_code === null;
    if (!wanted || session.node_id !== body.node_id) throw new ApiError("terminal_session_unknown");
    await bindToGateway(system, session.id, service.instanceId);
    return { grant: grantOfSession(session, terminals.limits) };
  });
}

/** Whoever has a used token could otherwise fill the audit with it. */
const refusalsTold = { attempts: 20, windowSeconds: 60 * 60 };

async function isWorthTelling(system: Sql, sessionId: string): Promise<boolean> {
  return takeAttempt(system, refusalsTold, "terminal-token", sessionId).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError) return false;
      throw error;
    },
  );
}

/** Of a token that there was: used twice, or too late, it may have come into the wrong hands. */
async function auditRefusedToken({ system, log }: ApiContext, hash: Buffer): Promise<void> {
  const known = await sessionOfToken(system, hash);
  const session = known && (await selectSession(system, known.sessionId));
  if (!session || !(await isWorthTelling(system, session.id))) return;
  await recordAudit(system, log, {
    orgId: session.org_id,
    by: actorOf(session),
    action: known.purpose === "open" ? "terminal.open" : "terminal.attach",
    target: { type: "terminal", id: session.id, name: `${session.username}@${session.node_name}` },
    result: "denied",
    reason: "terminal_token_refused",
    correlationId: known.correlationId,
  });
}
