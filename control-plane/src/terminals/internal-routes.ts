// Endpoints for gateways about terminals, on the internal listener.

import { ApiError } from "@holdfast/contracts/errors";
import {
  admitNodeStream,
  awaitTerminalTask,
  claimTerminalToken,
  openTerminal,
  reportTerminalEvents,
  reportUnclaimedToken,
  takeTerminal,
} from "@holdfast/contracts/internal/endpoints";
import type { ApiContext } from "../api/context.ts";
import { type InternalApi, internalRoute } from "../internal-api/route.ts";
import { hashSecret } from "../mechanisms/secrets.ts";
import { isRevoked, type Standing } from "../nodes/directory/standings.ts";
import { identityRefusal } from "../nodes/identity/identity-refusal.ts";
import { recordUnclaimed, refuseClaim } from "./claims.ts";
import { applyEvents } from "./events.ts";
import { grantOfSession, grantOfToken } from "./grants.ts";
import { awaitOpening, openOnNode } from "./open-on-node.ts";
import { bindToGateway, claimToken, selectSession } from "./queries.ts";
import { hasEnded } from "./state.ts";

export function terminalInternalRoutes(internalApi: InternalApi, api: ApiContext): void {
  const { system, log, terminals } = api;

  internalRoute(internalApi, claimTerminalToken, async ({ body, service, correlationId }) => {
    const hash = hashSecret(body.token);
    const openSeconds = terminals.limits.terminalOpenSeconds;
    const claimed = await claimToken(system, { hash, gatewayId: service.instanceId, openSeconds });
    if (claimed && claimed !== "used_up") return grantOfToken(claimed, terminals.limits);
    throw await refuseClaim(api, { hash, correlationId, wasGood: claimed === "used_up" });
  });

  internalRoute(internalApi, reportUnclaimedToken, async ({ body }) => {
    const hash = Buffer.from(body.token_hash, "base64url");
    const sessionId = await recordUnclaimed(api, { hash, failed: body.failed });
    if (sessionId !== undefined) terminals.watch.changed(sessionId);
    return undefined;
  });

  const opening = {
    ...{ system, tasks: api.tasks, log },
    nodes: api.nodes,
    detachedSeconds: terminals.limits.terminalDetachedSeconds,
    onSent: terminals.watch.changed,
  };

  internalRoute(internalApi, openTerminal, ({ params, body, service }) => {
    const place = { sessionId: params.session_id, gatewayId: service.instanceId };
    return openOnNode(opening, place, { cols: body.cols, rows: body.rows });
  });

  internalRoute(internalApi, awaitTerminalTask, ({ params, body, service, signal }) => {
    const place = { sessionId: params.session_id, gatewayId: service.instanceId };
    return awaitOpening(opening, { ...place, taskId: body.task_id }, signal);
  });

  internalRoute(internalApi, takeTerminal, async ({ params, service }) => {
    await bindToGateway(system, params.session_id, service.instanceId);
    return undefined;
  });

  internalRoute(internalApi, reportTerminalEvents, async ({ params, body, service }) => {
    const applied = await system.begin((tx) =>
      applyEvents(tx, log, params.session_id, body.events, { gatewayId: service.instanceId }),
    );
    if (!applied) throw new ApiError("terminal_session_unknown");
    terminals.notice(applied);
    terminals.watch.changed(params.session_id);
    return undefined;
  });

  internalRoute(internalApi, admitNodeStream, async ({ params, body, service }) => {
    const [session, standing] = await Promise.all([
      selectSession(system, params.session_id),
      api.nodes.directory.standingOf({ nodeId: body.node_id, serial: body.serial.toLowerCase() }),
    ]);
    if (!standing || isRevoked(standing, body.serial.toLowerCase())) throw withReason(standing);
    const theirs = session?.node_id === body.node_id && !hasEnded(session.state) ? session : undefined;
    if (!theirs) throw new ApiError("terminal_session_unknown");
    // The gateway may have missed the request to close it.
    if (theirs.close_code !== null)
      throw new ApiError("terminal_session_unknown", { details: { reason: theirs.close_code } });
    if (body.again && theirs.gateway_id !== service.instanceId) throw new ApiError("terminal_moved");
    await bindToGateway(system, theirs.id, service.instanceId);
    return { grant: grantOfSession(theirs, terminals.limits) };
  });
}

/** A retired or revoked node ends the terminal for that reason; a replaced certificate does not end it. */
function withReason(standing: Standing | undefined): ApiError {
  const { code, message, nextStep } = identityRefusal(standing);
  if (!standing || (standing.revokedAt === null && standing.status !== "retired"))
    return new ApiError(code, { message, nextStep });
  const reason = standing.status === "retired" ? "terminal_node_retired" : "terminal_node_revoked";
  return new ApiError(code, { message, nextStep, details: { reason } });
}
