// Executions as text for people.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { Execution, getExecution } from "@holdfast/contracts/endpoints/executions";
import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import { cancellingTitle, executionStateTitles } from "@holdfast/contracts/words/state-titles";
import { type Column, localTime, readable, span } from "../../output.ts";

export const executionRows: Column<Execution>[] = [
  { title: "step", of: (row) => row.step_id },
  { title: "state", of: (row) => stateOf(row) + (row.error ? ` (${row.error.slice(0, 60)})` : "") },
  { title: "agent", of: (row) => row.agent_name },
  { title: "requested", of: (row) => localTime(row.created_at) },
  { title: "took", of: tookOf },
  { title: "id", of: (row) => row.id },
];

export function describeExecution(execution: AnswerOf<typeof getExecution>): string {
  const { selector, error } = execution;
  const rows: [string, string | null][] = [
    ["state", stateOf(execution)],
    ["agent", execution.agent_name && `${execution.agent_name} (${execution.agent_id})`],
    ["chosen by", selector.tag ?? selector.agent_id],
    ["kind", execution.kind],
    ["requested", localTime(execution.created_at)],
    ["sent", localTime(execution.dispatched_at)],
    ["started", localTime(execution.accepted_at)],
    ["ended", localTime(execution.finished_at)],
    ["took", tookOf(execution)],
    ["deadline", execution.finished_at ? null : localTime(execution.deadline_at)],
    ["progress", execution.progress?.message ?? null],
    ["request", execution.request_id],
    ["correlation", execution.correlation_id],
    ["late results", execution.late_results.length > 0 ? String(execution.late_results.length) : null],
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [
    `${execution.step_id} ${execution.id}`,
    ...shown.map(([label, value]) => `  ${label.padEnd(12)} ${value}`),
    ...(error === null ? [] : ["", ...whatHappened(error)]),
    ...(execution.not_chosen.length === 0
      ? []
      : [
          "",
          "  Why no agent was chosen:",
          ...execution.not_chosen.map((one) => `    ${one.name}: ${one.message}`),
        ]),
    ...(execution.output === null || execution.output === undefined ? [] : ["", readable(execution.output, "  ")]),
    ...(execution.output_erased_at ? ["", `  Output erased ${localTime(execution.output_erased_at)}.`] : []),
  ].join("\n");
}

function whatHappened(error: string): string[] {
  if (!Object.hasOwn(executionOutcomes, error)) return [`  ${error}`];
  const { message, nextStep } = executionOutcomes[error as keyof typeof executionOutcomes];
  return [`  ${message} (${error})`, `  ${nextStep}`];
}

function stateOf({ status, cancel_requested_at }: Execution): string {
  const cancelling = cancel_requested_at !== null && (status === "dispatched" || status === "running");
  return (cancelling ? cancellingTitle : executionStateTitles[status]).title.toLowerCase();
}

function tookOf({ dispatched_at, finished_at }: Execution): string | null {
  if (!dispatched_at || !finished_at) return null;
  return span(Math.max(0, Date.parse(finished_at) - Date.parse(dispatched_at)));
}
