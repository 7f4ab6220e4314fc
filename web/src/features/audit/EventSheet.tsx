// All that is known of one audit event.

import type { AuditEvent } from "@holdfast/contracts/endpoints/audit";
import { Button } from "../../design/controls/Button.tsx";
import { Dialog } from "../../design/dialogs/Dialog.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { TraceLink } from "../trace/TraceLink.tsx";
import { resultMarks } from "./result-marks.ts";

/** The platform's listing also says in which organization. */
export type ShownEvent = AuditEvent & { org_id?: string | null };

type EventSheetProps = {
  event: ShownEvent | null;
  onClose: () => void;
  onFollow: (correlationId: string) => void;
};

export function EventSheet({ event, onClose, onFollow }: EventSheetProps) {
  return (
    <Dialog
      open={event !== null}
      onClose={onClose}
      place="sheet"
      title={event?.action ?? ""}
      description="Audit event"
    >
      {event && (
        <>
          <Facts className="border-t border-line">
            <Fact name="Result">
              <StatusMark state={resultMarks[event.result].state}>{resultMarks[event.result].word}</StatusMark>
              {event.reason && (
                <span className="ml-2">
                  <Code>{event.reason}</Code>
                </span>
              )}
            </Fact>
            <Fact name="Time">
              <When at={event.at} exact /> <span className="text-sm text-ink-muted">({event.at})</span>
            </Fact>
            <Fact name="Actor">
              {event.actor_name} <span className="text-ink-muted">{event.actor_type.replace("_", " ")}</span>
            </Fact>
            {event.actor_id && (
              <Fact name="Actor id">
                <CopyableId id={event.actor_id} label="Copy actor id" />
              </Fact>
            )}
            <Fact name="Role">{event.role}</Fact>
            <Fact name="Target">
              {event.target_name ?? "none"} <span className="text-ink-muted">{event.target_type}</span>
            </Fact>
            {event.target_id && (
              <Fact name="Target id">
                <CopyableId id={event.target_id} label="Copy target id" />
              </Fact>
            )}
            {event.org_id && (
              <Fact name="Organization id">
                <CopyableId id={event.org_id} label="Copy organization id" />
              </Fact>
            )}
            <Fact name="Event id">
              <CopyableId id={event.id} label="Copy event id" />
            </Fact>
            <Fact name="Correlation id">
              <CopyableId id={event.correlation_id} label="Copy correlation id" />
              <Button className="mt-1.5 block" onClick={() => onFollow(event.correlation_id)}>
                Show all with this correlation id
              </Button>
              {event.org_id === undefined && <TraceLink id={event.id} />}
            </Fact>
            {event.incident_id && event.org_id === undefined && (
              <Fact name="Incident id">
                <CopyableId id={event.incident_id} label="Copy incident id" />
                <TraceLink id={event.incident_id} of="incident" />
              </Fact>
            )}
          </Facts>
          <Details details={event.details} />
        </>
      )}
    </Dialog>
  );
}

function Details({ details }: { details: Record<string, unknown> }) {
  if (Object.keys(details).length === 0) return null;
  return (
    <>
      <h3 className="mt-6 mb-2 font-semibold">Details</h3>
      <pre className="rounded-md bg-sunken p-3 whitespace-pre-wrap [overflow-wrap:anywhere] font-mono text-sm">
        {JSON.stringify(details, null, 2)}
      </pre>
    </>
  );
}
