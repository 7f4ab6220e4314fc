// Stores events of a terminal, with their audit events, in one transaction: in the order in which they were reported, and
// once, however often they are reported.

import { ApiError } from "@holdfast/contracts/errors";
import type { Log } from "@holdfast/service/log";
import { type AuditActor, actorOf, type NewAuditEvent, recordAudit } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { applyEvent, type Lifecycle, type Note, type Observed } from "./lifecycle.ts";
import { lifecycleOf, lockSession, type SessionRow, storeLifecycle } from "./queries.ts";

/** The notes are for whoever counts or judges them, after the commit. */
export type Applied = { session: SessionRow; lifecycle: Lifecycle; notes: Note[] };

/** `gatewayId`: that reports them. Returns undefined if the terminal does not exist. */
export async function applyEvents(
  tx: Tx,
  log: Log,
  sessionId: string,
  events: readonly Observed[],
  options: { by?: AuditActor; gatewayId?: string } = {},
): Promise<Applied | undefined> {
  const session = await lockSession(tx, sessionId);
  if (!session) return undefined;
  if (options.gatewayId !== undefined && !mayReport(session, options.gatewayId, events))
    throw new ApiError("terminal_moved");
  let lifecycle = lifecycleOf(session);
  const notes: Note[] = [];
  for (const event of events) {
    const next = applyEvent(lifecycle, event);
    lifecycle = next.lifecycle;
    notes.push(...next.notes);
  }
  await storeLifecycle(tx, sessionId, lifecycle);
  const by = options.by ?? actorOf(session);
  for (const note of notes) {
    const target = { type: "terminal", id: session.id, name: `${session.username}@${session.node_name}` };
    const correlationId = correlationIdOf(note) ?? session.correlation_id;
    await recordAudit(tx, log, {
      orgId: session.org_id,
      by,
      target,
      correlationId,
      ...auditFieldsOf(note, session),
    });
  }
  return { session, lifecycle, notes };
}

/**
 * Only the gateway that has the terminal reports for it. Any other may still report that a client at it got an error, which
 * changes nothing about an open shell.
 */
function mayReport({ gateway_id, state }: SessionRow, gatewayId: string, events: readonly Observed[]): boolean {
  if (gateway_id === gatewayId) return true;
  return state === "open" && events.every((event) => event.type === "failed" && !event.ended);
}

/** Belongs to the connection that the event is about, which need not be the one that opened the terminal. */
function correlationIdOf(note: Note): string | null {
  if (note.type === "failed") return note.failure.correlation_id;
  return note.type === "closed" ? note.correlationId : null;
}

function auditFieldsOf(
  note: Note,
  { allocation_id, lease_id }: SessionRow,
): Pick<NewAuditEvent, "action" | "result" | "reason" | "details"> {
  const at = lease_id === null ? { allocation_id } : { lease_id };
  switch (note.type) {
    case "opened":
      return { action: "terminal.open", result: "allowed", details: { ...at, seconds: note.seconds } };
    case "attached":
      return { action: "terminal.attach", result: "allowed", details: at };
    case "failed":
      return {
        ...{ action: "terminal.fail", result: "failed", reason: note.failure.code },
        details: { ...at, detail: note.failure.detail },
      };
    case "closed": {
      const { reason, failure, exit, bytesIn: bytes_in, bytesOut: bytes_out } = note;
      const outcome = failure
        ? ({ result: "failed", reason: failure.code } as const)
        : ({ result: "allowed" } as const);
      const detail = failure?.detail ?? null;
      return {
        ...{ action: "terminal.close", ...outcome },
        details: { ...at, reason, detail, exit, bytes_in, bytes_out },
      };
    }
  }
}
