// What a correlation id leads to: the audit, the delivered records, the logs of both sides. Searched as an operator
// searches, by the id alone; expectations only say which of several finds is meant, and what is worth waiting for.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { listNodeDiagnostics } from "@holdfast/contracts/endpoints/nodes";
import type { Found, Observer } from "./evidence.ts";
import { traceFor } from "./expectations.ts";
import type { Lab } from "./lab/lab.ts";
import type { Line } from "./lab/program.ts";
import { until } from "./until.ts";

/** The worker looks for silent nodes every five seconds; an agent delivers its records with its next heartbeat. */
const SEARCH_SECONDS = 45;

export async function findById(lab: Lab, id: string, of: { by: Observer; code: string }): Promise<Found> {
  const expected = traceFor(of);
  const { operator } = lab.control;
  const search = async (): Promise<Found> => {
    const [audit, diagnostics] = await Promise.all([
      operator(listAudit, { query: { correlation_id: id } }),
      operator(listNodeDiagnostics, { params: { node_id: lab.node.id } }),
    ]);
    const event = preferred(audit.items, ({ action }) => action === expected.audit?.action);
    const records = diagnostics.items.filter(({ correlation_id }) => correlation_id === id);
    return {
      audit: event
        ? {
            ...{ action: event.action, result: event.result, reason: event.reason, target: event.target_type },
            correlation_id: event.correlation_id,
            hop: textIn(event.details, "hop"),
            signal: textIn(event.details, "signal"),
            owner: textIn(event.details, "owner"),
          }
        : null,
      delivered:
        records.length > 0
          ? { reasons: [...new Set(records.map(({ reason }) => reason))].toSorted(), correlation_id: id }
          : null,
      server_log: lineIn(lab.control.lines(), id, [expected.server_log]),
      host_log: lineIn(lab.node.lines(), id, expected.host_log),
    };
  };
  // Both come a moment later; what is not in a log by then never will be.
  const isComplete = (found: Found) =>
    (["audit", "delivered"] as const).every((where) => expected[where] === null || found[where] !== null);
  let latest = await search();
  await until(`everything about ${id}`, SEARCH_SECONDS, async () => {
    if (!isComplete(latest)) latest = await search();
    return isComplete(latest);
  }).catch(() => undefined);
  // What an id also leads to is no mistake: a task's id is in the logs of everything that the task met.
  return {
    audit: latest.audit,
    delivered: expected.delivered === null ? null : latest.delivered,
    server_log: expected.server_log === null ? null : latest.server_log,
    host_log: expected.host_log.length === 0 ? null : latest.host_log,
  };
}

/** A record's line names its reason in a field; all others are known by their message. */
function lineIn(lines: readonly Line[], id: string, wanted: readonly (string | null)[]): Found["server_log"] {
  const named = lines
    .filter(({ correlation_id }) => correlation_id === id)
    .map(({ msg = "", reason }) => (reason !== undefined && msg.startsWith(`${reason}:`) ? reason : msg));
  const message = preferred(named, (one) => wanted.includes(one));
  return message === undefined ? null : { message, correlation_id: id };
}

function preferred<T>(all: readonly T[], wanted: (one: T) => boolean): T | undefined {
  return all.find(wanted) ?? all[0];
}

function textIn(details: unknown, field: string): string | null {
  const value = (details as Record<string, unknown> | null)?.[field];
  return typeof value === "string" ? value : null;
}
