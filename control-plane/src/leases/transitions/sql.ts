// The transition table as SQL: conditions and new states for the statements in this folder. A statement names its row `l`
// unless it says otherwise.

import type { LeaseState } from "@holdfast/contracts/endpoints/leases";
import { ConstantSql } from "../../database/connect.ts";
import { cellsOf, isOneOf, literal, stateAfterEvent } from "../../mechanisms/transition-sql.ts";
import {
  INITIAL_STATE,
  type LeaseEvent,
  leaseEvents,
  leaseTable,
  type Outcome,
  statesChangedBy,
  statesEnded,
  statesLeaving,
  statesOnHost,
} from "./table.ts";

/** The event changes the state. */
export const isChangedBy = (event: LeaseEvent, row = "l") => isOneOf(`${row}.status`, statesChangedBy(event));

/** It waits for a host. The second part is what the partial index is defined by. */
export const isWaiting = (row = "l") =>
  new ConstantSql(`${isChangedBy("place", row).text} AND ${row}.finished_at IS NULL AND ${row}.host_id IS NULL`);

/** A host has it, with its share of the host's capacity. */
export const isOnHost = (row = "l") =>
  new ConstantSql(
    `${isOneOf(`${row}.status`, statesOnHost).text} AND ${row}.finished_at IS NULL AND ${row}.host_id IS NOT NULL`,
  );

/** Its VM is to be removed from its host. */
export const isLeaving = (row = "l") =>
  new ConstantSql(`${isOneOf(`${row}.status`, statesLeaving).text} AND ${row}.finished_at IS NULL`);

export const isEnded = (column: string) => isOneOf(column, statesEnded);
export const isInitial = (column: string) => isOneOf(column, [INITIAL_STATE]);
export const isIn = (column: string, ...states: LeaseState[]) => isOneOf(column, states);
export const initialState = literal(INITIAL_STATE);

/** The state of `l` after the event; where the table changes nothing, the state it has. */
export const stateAfter = (event: LeaseEvent) => stateAfterEvent(leaseTable, "l.status", event);

/** What `read` returns for the cell of the event and the state that are in these columns. */
export const byEvent = (
  columns: { event: string; status: string },
  read: (outcome: Outcome) => string | undefined,
) => cellsOf(leaseTable, columns, leaseEvents, read);
