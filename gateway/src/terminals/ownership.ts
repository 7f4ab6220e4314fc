// Takes a terminal for this gateway, in the bindings and with the api. A terminal that cannot be bound is served all the
// same: its node's stream may reach this gateway by itself.

import { type TerminalGrant, takeTerminal } from "@holdfast/contracts/internal/endpoints";
import type { Log } from "@holdfast/service/log";
import type { ApiLink } from "../api-link/link.ts";
import type { Bindings } from "../bindings/bindings.ts";

type Ownership = { api: Pick<ApiLink, "ask" | "instanceId">; bindings: Bindings; log: Log };

/** Called before the node is asked for a stream, so that every gateway knows where to pass it on to. */
export async function takeForClient({ api, bindings, log }: Ownership, grant: TerminalGrant): Promise<void> {
  const { session_id, correlation_id, purpose } = grant;
  try {
    await bindings.takeOver(session_id);
  } catch (error) {
    const reason = (error as Error).message;
    log.warn({ session_id, correlation_id, reason }, "other gateways cannot find this terminal");
    return;
  }
  // A terminal that is opened here is this gateway's already.
  if (purpose === "open") return;
  const request = { params: { session_id }, body: { gateway_id: api.instanceId }, correlationId: correlation_id };
  await api.ask(takeTerminal, request).catch((error: Error) => {
    log.warn({ session_id, correlation_id, reason: error.message }, "could not report that a terminal moved here");
  });
}

/** For a stream that found no owner: another gateway may have taken its terminal meanwhile. */
export async function isTakenElsewhere({ api, bindings }: Ownership, sessionId: string): Promise<boolean> {
  const owner = await bindings.take(sessionId).catch(() => undefined);
  return owner !== undefined && owner.id !== api.instanceId;
}
