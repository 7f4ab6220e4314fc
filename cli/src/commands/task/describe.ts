// Tasks and task types as text for people.

import { type Task, type TaskTypeInfo, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import { cancellingTitle, taskStatusTitles } from "@holdfast/contracts/words/state-titles";
import { type Column, localTime, readable, span } from "../../output.ts";

export const taskRows: Column<Task>[] = [
  { title: "id", of: (row) => row.id },
  { title: "type", of: (row) => row.type },
  { title: "node", of: (row) => row.node_id },
  { title: "status", of: (row) => titleOf(row) + (row.failure ? ` (${row.failure.code})` : "") },
  { title: "phase", of: (row) => row.phase },
  { title: "created", of: (row) => localTime(row.created_at) },
  { title: "took", of: (row) => (row.finished_at ? span(elapsed(row)) : null) },
];

export function describeTask(task: Task): string {
  const timings = Object.entries(task.timings).map(([phase, ms]) => `${phase} ${span(ms)}`);
  const rows: [string, string | null][] = [
    ["node", task.node_id],
    ["status", statusOf(task)],
    ["created", `${localTime(task.created_at)} by ${task.created_by}`],
    ["expires", terminalStatuses.has(task.status) ? null : localTime(task.expires_at)],
    ["took", task.finished_at && span(elapsed(task))],
    ["timings", timings.join(", ") || null],
    ["deliveries", String(task.generation)],
    ["correlation", task.correlation_id],
    ["incident", task.incident_id],
    ["replays", task.replays],
    ["params", JSON.stringify(task.params)],
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [
    `${task.type} ${task.id}`,
    ...shown.map(([label, value]) => `  ${label.padEnd(12)} ${value}`),
    ...(task.result === null ? [] : ["", readable(task.result, "  ")]),
    ...(task.failure
      ? ["", `  ${task.failure.message} (${task.failure.code})`, `  ${task.failure.next_step}`]
      : []),
  ].join("\n");
}

/** One line for a running task: its phase, progress and age. */
export function progressLine(task: Task, now = Date.now()): string {
  const percent = percentOf(task.progress);
  return [
    statusOf(task),
    ...(percent === undefined ? [] : [`${Math.round(percent)} %`]),
    span(Math.max(0, now - Date.parse(task.created_at))),
  ].join("  ");
}

function statusOf(task: Task): string {
  if (terminalStatuses.has(task.status)) return titleOf(task);
  if (task.cancel_requested_at) return cancellingTitle.title.toLowerCase();
  if (task.status === "queued") return "waiting for the node";
  return task.phase ?? titleOf(task);
}

function titleOf({ status }: Pick<Task, "status">): string {
  return taskStatusTitles[status].title.toLowerCase();
}

function percentOf(progress: unknown): number | undefined {
  const { percent } = (progress ?? {}) as { percent?: unknown };
  return typeof percent === "number" ? percent : undefined;
}

function elapsed(task: Task): number {
  return Math.max(0, Date.parse(task.finished_at ?? "") - Date.parse(task.created_at));
}

export function describeTypes(types: readonly TaskTypeInfo[]): string {
  return types
    .map((type) =>
      [
        `${type.type}${type.by_hand ? "" : "  (run by Holdfast only)"}`,
        `  ${type.summary}.`,
        ...parameterLines(type.params),
        ...(type.capabilities.length > 0 ? [`  requires the capability ${type.capabilities.join(" or ")}`] : []),
      ].join("\n"),
    )
    .join("\n\n");
}

type ParameterSchema = { type?: string; enum?: unknown[]; description?: string; default?: unknown };

function parameterLines(schema: unknown): string[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Record<string, ParameterSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { type, enum: choices, description, default: preset }]) => {
    const form = choices ? choices.join("|") : (type ?? "value");
    const must = required.includes(name) && preset === undefined ? ", required" : "";
    return `  ${name} (${form}${must})${description ? `: ${description}` : ""}`;
  });
}
