// The transition table as SQL: conditions, new statuses and the generation fence, for the statements in this folder. A
// statement names its row `t` unless it says otherwise.

import { LEASE_SECONDS } from "@holdfast/contracts/node/limits";
import { ConstantSql } from "../../database/connect.ts";
import { cellsOf, isOneOf, stateAfterEvent } from "../../mechanisms/transition-sql.ts";
import { type Outcome, statusesChangedBy, statusesWith, type TaskEvent, taskTable } from "./table.ts";

/** The event changes the status. */
export const isChangedBy = (event: TaskEvent, row = "t") => isOneOf(`${row}.status`, statusesChangedBy(event));

/** The event has this outcome in the row's status. */
export const hasOutcome = (event: TaskEvent, outcome: Exclude<Outcome, object>, row = "t") =>
  isOneOf(`${row}.status`, statusesWith(event, outcome));

/** It waits for a node to claim it. */
export const isWaiting = (row = "t") => isChangedBy("claim", row);

/** It was delivered, and its node may be at work. */
export const isDelivered = (row = "t") => hasOutcome("claim", "renewed", row);

/** The status of `t` after the event; where the table changes nothing, the status it has. */
export const statusAfter = (event: TaskEvent) => stateAfterEvent(taskTable, "t.status", event);

/** What `read` returns for the cell of the event and the status that are in these columns, for these events. */
export const byEvent = (
  columns: { event: string; status: string },
  events: readonly TaskEvent[],
  read: (outcome: Outcome) => string | undefined,
) => cellsOf(taskTable, columns, events, read);

/**
 * The generation fence: a node speaks for the current delivery if it names its generation. It may also name the next
 * one: a claim is committed without waiting for the disk, and a crash can undo one claim of a task, not two, because a
 * lease lies between them.
 */
export const isCurrent = (row: string, generation: string) =>
  new ConstantSql(`${generation} BETWEEN ${row}.generation AND ${row}.generation + 1`);

/** The node has reported the end of this delivery before. */
export const isRepeated = (row: string, generation: string) =>
  new ConstantSql(`${row}.reported AND ${row}.generation = ${generation}`);

export const newLease = new ConstantSql(`now() + ${LEASE_SECONDS} * interval '1 second'`);
