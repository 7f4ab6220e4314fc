// Audit events as rows. The action is the button that opens the details; the rest of the row follows
// the mouse.

import { Cell, Table } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import type { Membership } from "../../session.ts";
import type { ShownEvent } from "./EventSheet.tsx";
import { resultMarks } from "./result-marks.ts";

type AuditTableProps = {
  events: ShownEvent[];
  onShow: (event: ShownEvent) => void;
  everywhere: boolean;
  organizations: readonly Membership[];
};

export function AuditTable({ events, onShow, everywhere, organizations }: AuditTableProps) {
  const names = new Map(organizations.map((each) => [each.id, each.name]));
  // What matters most comes first: a narrow screen shows the left of a table.
  const columns = ["Time", "Result", "Actor", "Action", "Target", ...(everywhere ? ["Organization"] : [])];
  return (
    <Table label="Audit events" columns={columns}>
      {events.map((event) => (
        <tr key={event.id} onClick={() => onShow(event)} className="cursor-pointer hover:bg-hover">
          <Cell className="text-sm text-ink-muted">
            <When at={event.at} exact />
          </Cell>
          <Cell>
            <StatusMark state={resultMarks[event.result].state}>{resultMarks[event.result].word}</StatusMark>
          </Cell>
          <Cell className="max-w-60 truncate" title={event.actor_name}>
            {event.actor_name}
            {event.role !== "none" && <span className="ml-1.5 text-sm text-ink-muted">{event.role}</span>}
          </Cell>
          <Cell>
            <button
              type="button"
              className="rounded-sm font-mono text-sm whitespace-nowrap text-kelp hover:underline"
              aria-label={`Details of ${event.action}`}
            >
              {event.action}
            </button>
          </Cell>
          <Cell className="max-w-64 truncate" title={event.target_name ?? event.target_id ?? undefined}>
            {event.target_name ?? event.target_id ?? <span className="text-ink-muted">none</span>}
            <span className="ml-1.5 text-sm text-ink-muted">{event.target_type}</span>
          </Cell>
          {everywhere && (
            <Cell className="whitespace-nowrap">
              {event.org_id ? (
                (names.get(event.org_id) ?? event.org_id)
              ) : (
                <span className="text-ink-muted">platform</span>
              )}
            </Cell>
          )}
        </tr>
      ))}
    </Table>
  );
}
