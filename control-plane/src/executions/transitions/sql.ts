// The transition table as SQL: conditions, new statuses and the fence of deliveries, for the statements in this folder. A
// statement names its row `e` unless it says otherwise.

import type { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import { ConstantSql } from "../../database/connect.ts";
import { cellsOf, isOneOf, stateAfterEvent } from "../../mechanisms/transition-sql.ts";
import { EXECUTION_LEASE_SECONDS } from "../settings.ts";
import {
  type ExecutionEvent,
  executionTable,
  type Outcome,
  statusesChangedBy,
  statusesInFlight,
} from "./table.ts";

/** The event changes the status. */
export const isChangedBy = (event: ExecutionEvent, row = "e") =>
  isOneOf(`${row}.status`, statusesChangedBy(event));

/** With an agent. The second part is what the partial indexes are defined by. */
export const isInFlight = (row = "e") =>
  new ConstantSql(
    `${isOneOf(`${row}.status`, statusesInFlight).text} AND ${row}.finished_at IS NULL AND ${row}.agent_id IS NOT NULL`,
  );

/** It waits for an agent. */
export const isWaiting = (row = "e") =>
  new ConstantSql(`${isChangedBy("assign", row).text} AND ${row}.finished_at IS NULL AND ${row}.agent_id IS NULL`);

/** The status of `e` after the event; where the table changes nothing, the status it has. */
export const statusAfter = (event: ExecutionEvent) => stateAfterEvent(executionTable, "e.status", event);

/** What `read` returns for the cell of the event and the status that are in these columns, for these events. */
export const byEvent = (
  columns: { event: string; status: string },
  events: readonly ExecutionEvent[],
  read: (outcome: Outcome) => string | undefined,
) => cellsOf(executionTable, columns, events, read);

/**
 * The fence: an agent speaks for the current delivery if the row is with it, was sent to it, and it names the generation. An
 * agent of another system names none; it never has a request twice.
 */
export const isCurrent = (row: string, report: string) =>
  new ConstantSql(
    `(${row}.agent_id IS NOT DISTINCT FROM ${report}.agent_id AND ${row}.session_id IS NOT NULL
      AND coalesce(${report}.generation, ${row}.generation) = ${row}.generation)`,
  );

/** The agent has reported the end of this delivery before. */
export const isRepeated = (row: string, report: string) =>
  new ConstantSql(`(${row}.reported AND ${isCurrent(row, report).text})`);

/** The agent has it, or had it: to any other one it is unknown. */
export const isKnownTo = (row: string, report: string) =>
  new ConstantSql(`(${row}.agent_id = ${report}.agent_id OR ${report}.agent_id = ANY (${row}.declined_by))`);

export const newLease = new ConstantSql(`now() + ${EXECUTION_LEASE_SECONDS} * interval '1 second'`);

/** The error of an end that no agent reported. */
export const errorText = (code: keyof typeof executionOutcomes) => new ConstantSql(`'${code}'`);

/** The columns of a request that is no longer with an agent and waits for another. */
export const withoutAgent = new ConstantSql(
  "agent_id = NULL, session_id = NULL, journal_id = NULL, signature = NULL, deadline_at = NULL, lease_until = NULL, accepted_at = NULL, progress = NULL",
);
