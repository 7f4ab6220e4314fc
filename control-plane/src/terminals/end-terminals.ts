// Ends terminals that no gateway reports on any more, and removes old ones. terminals/state.ts decides the outcome, as it
// does for the ends that gateways report.

import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { Log } from "@holdfast/service/log";
import { systemActor } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { type Applied, applyEvents } from "./events.ts";
import type { Observed } from "./lifecycle.ts";
import { terminalIsLive } from "./state.ts";

const BATCH = 1_000;
/** How long after each deadline a gateway may still report the end. */
const MARGIN = "60 seconds";
const LONG_MARGIN = "5 minutes";

const reconciler = systemActor("reconciler");

type Due = { id: string; correlation_id: string; why: "unused" | TerminalFailureCode };

/** `onEnded`: called with each after the commit. */
export async function endTerminals(
  system: Sql,
  signals: Pick<Signals, "publish">,
  log: Log,
  onEnded: (applied: Applied) => Promise<void> = async () => undefined,
): Promise<number> {
  let ended = 0;
  for (;;) {
    const due = await selectDue(system);
    for (const { id, correlation_id, why } of due) {
      const at = new Date().toISOString();
      const event: Observed =
        why === "unused" ? { type: "unused", at } : { type: "abandoned", at, code: why, correlation_id };
      const applied = await system.begin((tx) => applyEvents(tx, log, id, [event], { by: reconciler }));
      signals.publish("terminal", [id]);
      if (applied) await onEnded(applied);
    }
    ended += due.length;
    if (due.length < BATCH) return ended;
  }
}

function selectDue(system: Sql): Promise<Due[]> {
  return system<Due[]>`
    SELECT * FROM (
      SELECT s.id, s.correlation_id, CASE
        WHEN s.close_asked_at < now() - ${MARGIN}::interval THEN s.close_code
        WHEN s.state = 'opening' AND s.opening_until < now() - ${MARGIN}::interval
          THEN CASE WHEN s.gateway_id IS NULL THEN 'unused' ELSE 'terminal_ui_connecting_stuck' END
        WHEN s.state = 'open' AND s.ends_by < now() - ${LONG_MARGIN}::interval THEN 'terminal_time_over'
        WHEN s.state = 'open' AND s.heard_at < now() - s.detached_seconds * interval '1 second' - ${MARGIN}::interval
          AND NOT EXISTS (
            SELECT FROM gateways g WHERE g.id = s.gateway_id
              AND g.last_seen_at > now() - s.detached_seconds * interval '1 second' - ${MARGIN}::interval)
          THEN 'terminal_stream_lost'
        END AS why
      FROM terminal_sessions s WHERE ${terminalIsLive("s")}
    ) AS looked_at WHERE why IS NOT NULL ORDER BY id LIMIT ${BATCH}`;
}

/** A used token is kept for an hour, so that a second use is distinguished from an unknown token. */
export async function removeOldTerminals(system: Sql, options: { days: number }): Promise<Record<string, number>> {
  const removed = {
    terminal_tokens: await system`DELETE FROM terminal_tokens WHERE expires_at < now() - interval '1 hour'`,
    terminal_sessions: await system`
      DELETE FROM terminal_sessions WHERE closed_at < now() - ${options.days} * interval '1 day'`,
    gateways: await system`DELETE FROM gateways WHERE last_seen_at < now() - interval '2 days'`,
  };
  return Object.fromEntries(Object.entries(removed).map(([table, result]) => [table, result.count]));
}
