// A source of a story: what it is asked with, and what it returns. Another one is an entry in `sources.ts`.

import type { Scope } from "@holdfast/contracts/public/permissions";
import type { Caller } from "../../allocations/access.ts";
import type { Tx } from "../../database/connect.ts";
import type { KeptLine } from "../../logs/lines.ts";
import type { AuditRow, Entry, IncidentRow } from "./entries.ts";

/** What an id was resolved to, and who asks. */
export type Story = {
  tx: Tx;
  caller: Caller;
  incidents: readonly IncidentRow[];
  incidentIds: string[];
  correlationIds: string[];
  taskIds: string[];
  /** Null: of all allocations. */
  allocationId: string | null;
  /** The audit events of the story, read once. Empty without the scope for them. */
  events(): Promise<readonly AuditRow[]>;
  /** Log lines that the caller may see, gathered before. */
  lines: readonly KeptLine[];
  linesTruncated: boolean;
};

export type TraceSource = {
  name: string;
  /** Without this scope it is left out, and named as withheld. */
  needs?: Scope;
  read(story: Story): Promise<{ entries: readonly Entry[]; truncated: boolean }>;
};

/** `rows`: one more than are wanted, if there are. */
export function newestOf<Row>(rows: readonly Row[], most: number, toEntries: (row: Row) => readonly Entry[]) {
  return { entries: rows.slice(0, most).flatMap(toEntries), truncated: rows.length > most };
}
