// The entries of a story, from rows. Pure.

import type { AuditEvent } from "@holdfast/contracts/endpoints/audit";
import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { TraceEntry } from "@holdfast/contracts/endpoints/trace";
import { errorCatalogue } from "@holdfast/contracts/errors";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { nextActions, type UserState } from "@holdfast/contracts/reasons/vocabulary";
import { recoveryCheckTitles, taskStatusTitles, userStateTitles } from "@holdfast/contracts/words/state-titles";
import { type KeptLine, presentLine } from "../../logs/lines.ts";
import type { Checklist } from "../recovery/gate.ts";
import type { StoredCause } from "../verdicts/stored.ts";

export type IncidentRow = {
  id: string;
  node_id: string | null;
  node_name: string | null;
  reason: string;
  began_at: Date;
  opened_at: Date;
  closed_at: Date | null;
  proof: Checklist | null;
};
export type VerdictRow = { incident_id: string; at: Date; causes: StoredCause[] };
export type ObservationRow = {
  node_id: string;
  kind: string;
  key: string;
  value: string;
  observer: string;
  detail: Record<string, unknown> | null;
  observed_at: Date;
  correlation_id: string | null;
};
export type AuditRow = Omit<AuditEvent, "at"> & { at: Date };
export type TaskRow = {
  id: string;
  node_id: string;
  type: string;
  status: TaskStatus;
  failure: { code: string; message: string } | null;
  created_by: string;
  correlation_id: string;
  created_at: Date;
  finished_at: Date | null;
};
export type NotificationRow = { allocation_id: string; node_id: string; state: UserState; at: Date };
export type TerminalRow = {
  id: string;
  node_id: string;
  actor_name: string;
  failure: { code: string; detail?: string | null } | null;
  at: Date;
  correlation_id: string;
};

export type DeliveryRow = {
  id: string;
  event: string;
  state: string;
  kind: string;
  attempts: number;
  answer: string | null;
  address: string | null;
  at: Date;
};
export type ExecutionRow = {
  id: string;
  request_id: string;
  kind: string;
  status: string;
  error: string | null;
  correlation_id: string;
  created_at: Date;
  dispatched_at: Date | null;
  accepted_at: Date | null;
  finished_at: Date | null;
};
export type LeaseEventRow = {
  lease_id: string;
  host_id: string | null;
  correlation_id: string;
  actor_name: string;
  at: Date;
  event: string;
  to_status: string | null;
  message: string | null;
};

export type Entry = Omit<TraceEntry, "at"> & { at: Date };
const empty = { code: null, detail: null, by: null, node_id: null, ref: null, correlation_id: null };

export function ofIncident({ id, node_id, reason, closed_at, proof }: IncidentRow): Entry[] {
  const ref = { type: "incident", id } as const;
  const seen = (proof ?? []).flatMap(({ check, evidence, observed_at }): Entry[] =>
    observed_at === null
      ? []
      : [
          {
            ...empty,
            ...{
              at: new Date(observed_at),
              kind: "proof",
              title: recoveryCheckTitles[check],
              code: check,
              node_id,
              ref,
            },
            detail: evidence,
          },
        ],
  );
  if (closed_at === null) return seen;
  const title = proof ? "Healthy again: recovery verified, incident closed" : "No cause left: incident closed";
  return [...seen, { ...empty, at: closed_at, kind: "classification", title, code: reason, node_id, ref }];
}

/** With what its causes rest on that was observed before the incident was opened. */
export function ofVerdict({ incident_id, at, causes }: VerdictRow, nodeId: string | null): Entry[] {
  const common = { ...empty, node_id: nodeId, ref: { type: "incident", id: incident_id } as const };
  const [headline, ...others] = causes;
  if (!headline) return [];
  const more = others.length === 0 ? "" : ` Also: ${others.map(({ spokenAs }) => titleOf(spokenAs)).join(", ")}.`;
  return [
    ...causes.flatMap(({ observed = [] }) =>
      observed.map(
        ({ kind, value, observedAt, detail }): Entry => ({
          ...common,
          ...observedAs({ kind, value, key: "", detail: detail ?? null }),
          at: new Date(observedAt),
        }),
      ),
    ),
    {
      ...{ ...common, at, kind: "classification", title: titleOf(headline.spokenAs), code: headline.reason },
      detail: `${headline.severity}, ${headline.confidence} confidence. ${nextActions[headline.nextAction]}${more}`,
    },
  ];
}

export function ofObservation(row: ObservationRow): Entry {
  const { node_id, observer: by, correlation_id, observed_at: at } = row;
  return { ...empty, ...observedAs(row), at, by, node_id, correlation_id };
}

type Observed = Pick<ObservationRow, "kind" | "key" | "value" | "detail">;

function observedAs({ kind, key, value, detail }: Observed): Pick<Entry, "kind" | "title" | "code" | "detail"> {
  const text = detail?.["text"];
  const said = typeof text === "string" && text !== "" ? text : null;
  if (kind === "refusal") {
    const known = (errorCatalogue as Record<string, { message: string } | undefined>)[value];
    return { kind: "refusal", title: "Request refused", code: value, detail: known?.message ?? said };
  }
  const isCode = kind === "finding" || kind === "diagnostic";
  const code = kind === "finding" ? key || null : isCode ? value : null;
  const words = `${kind.replaceAll("_", " ")}${key === "" || isCode ? "" : ` ${key}`}: ${value.replaceAll("_", " ")}`;
  const title = code === null ? words : `${titleOf(code)}${value === "absent" ? " (over)" : ""}`;
  return { kind: "observation", title: title.charAt(0).toUpperCase() + title.slice(1), code, detail: said };
}

export function ofAudit(row: AuditRow): Entry {
  const { at, action, target_type, target_id, target_name, result, reason, actor_name, correlation_id } = row;
  const node = target_type === "node" ? target_id : (row.details["node_id"] ?? null);
  return {
    ...{ ...empty, at, kind: result === "allowed" ? "action" : "refusal", by: actor_name, correlation_id },
    title: `${action} ${target_name ?? target_id ?? target_type}${result === "allowed" ? "" : `: ${result}`}`,
    code: reason,
    detail: reason === null ? null : titleOf(reason),
    node_id: typeof node === "string" ? node : null,
    ref: { type: "audit_event", id: row.id },
  };
}

/** `audited`: its creation is in the story already. */
export function ofTask(row: TaskRow, { audited }: { audited: boolean }): Entry[] {
  const { id, node_id, type, status, failure, created_by, correlation_id } = row;
  const common = { ...empty, node_id, correlation_id, ref: { type: "task", id } as const };
  const made: Entry = {
    ...common,
    at: row.created_at,
    kind: "action",
    title: `Task ${type} created`,
    by: created_by,
  };
  if (row.finished_at === null) return audited ? [] : [made];
  const ended: Entry = {
    ...{ ...common, at: row.finished_at, kind: "result", by: null },
    title: `Task ${type} ${taskStatusTitles[status].title.toLowerCase()}`,
    ...{ code: failure?.code ?? null, detail: failure?.message ?? null },
  };
  return audited ? [ended] : [made, ended];
}

export function ofNotification({ allocation_id, node_id, state, at }: NotificationRow): Entry {
  const { title } = userStateTitles[state];
  const ref = { type: "allocation", id: allocation_id } as const;
  return { ...empty, at, kind: "notification", title: `Allocation notified: ${title}`, code: state, node_id, ref };
}

export function ofTerminal(row: TerminalRow): Entry {
  const { id, node_id, failure, at, actor_name: by, correlation_id } = row;
  const ref = { type: "terminal", id } as const;
  const common = { ...empty, at, by, node_id, ref, correlation_id };
  if (!failure) return { ...common, kind: "action", title: "Terminal requested" };
  return {
    ...{ ...common, kind: "result", code: failure.code, detail: failure.detail ?? null },
    title: `Terminal failed: ${titleOf(failure.code)}`,
  };
}

export function ofDelivery({ event, state, kind, attempts, answer, address, at }: DeliveryRow): Entry {
  const where = address === null ? kind : `${kind} ${address}`;
  const title = `Message ${event}: ${state}${attempts > 1 ? ` after ${attempts} attempts` : ""}`;
  return { ...empty, at, kind: "notification", title, code: null, by: where, detail: answer };
}

export function ofExecution(row: ExecutionRow): Entry[] {
  const { id, request_id, kind, correlation_id, error } = row;
  const common = { ...empty, correlation_id, ref: { type: "execution", id } as const };
  const steps = [
    { at: row.created_at, kind: "action", title: `Step ${kind} requested` },
    { at: row.dispatched_at, kind: "action", title: `Step ${kind} sent to an agent` },
    { at: row.accepted_at, kind: "action", title: `Step ${kind} accepted by its agent` },
    { at: row.finished_at, kind: "result", title: `Step ${kind} ${row.status}`, code: error },
  ] as const;
  return steps.flatMap(({ at, ...step }) => (at === null ? [] : [{ ...common, ...step, at, detail: request_id }]));
}

export function ofLeaseEvent(row: LeaseEventRow): Entry {
  const { lease_id: id, host_id: node_id, correlation_id, actor_name: by, at, event, to_status, message } = row;
  const title = `Lease ${to_status ?? event.replaceAll("_", " ")}`;
  const isOver = to_status === "failed" || to_status === "terminated" || to_status === "orphaned";
  return {
    ...{ ...empty, at, kind: isOver ? "result" : "action", title, detail: message, by, node_id, correlation_id },
    ref: { type: "lease", id },
  };
}

/** Fields that say nothing to a reader of the line. */
const unsaid: ReadonlySet<string> = new Set(["pid", "org_id", "err"]);

export function ofLine(line: KeptLine): Entry {
  const { at, process, level, message, correlation_id, fields } = presentLine(line);
  const { err, node_id, code } = fields;
  const said = Object.entries(fields).filter(([name]) => !unsaid.has(name));
  const failure = typeof err === "object" && err !== null && "message" in err ? [String(err["message"])] : [];
  const texts = said.map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return {
    ...{ ...empty, at: new Date(at), kind: "log", title: `${level}: ${message}`, by: process, correlation_id },
    code: typeof code === "string" ? code : null,
    node_id: typeof node_id === "string" ? node_id : null,
    detail: [...failure, ...texts].join(" ") || null,
  };
}

/** In the order of time; what several sources report of one moment is listed once. */
export function inOrder(entries: readonly Entry[]): TraceEntry[] {
  const seen = new Map<string, TraceEntry>();
  const sorted = entries.toSorted((a, b) => a.at.getTime() - b.at.getTime());
  for (const { at, ...rest } of sorted) {
    const entry = { at: at.toISOString(), ...rest };
    const isObserved = entry.kind === "observation" || entry.kind === "refusal";
    const key = JSON.stringify(
      isObserved && entry.ref?.type !== "audit_event" ? [entry.at, entry.title, entry.code] : entry,
    );
    const before = seen.get(key);
    // The stored observation knows its observer and its id.
    if (!before || (before.correlation_id === null && entry.correlation_id !== null)) seen.set(key, entry);
  }
  return [...seen.values()];
}
