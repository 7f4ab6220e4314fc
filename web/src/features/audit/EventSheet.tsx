// All that is known of one audit event.

import type { AuditEvent } from "@holdfast/contracts/endpoints/audit";
import type { ReactNode } from "react";
import { Button } from "../../design/Button.tsx";
import { CopyableId } from "../../design/Copy.tsx";
import { Dialog } from "../../design/Dialog.tsx";
import { Code } from "../../design/Prose.tsx";
import { StatusMark } from "../../design/StatusMark.tsx";
import { When } from "../../design/When.tsx";
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
          <dl className="border-t border-line">
            <Row name="Result">
              <StatusMark state={resultMarks[event.result].state}>{resultMarks[event.result].word}</StatusMark>
              {event.reason && (
                <span className="ml-2">
                  <Code>{event.reason}</Code>
                </span>
              )}
            </Row>
            <Row name="Time">
              <When at={event.at} exact /> <span className="text-sm text-ink-muted">({event.at})</span>
            </Row>
            <Row name="Actor">
              {event.actor_name} <span className="text-ink-muted">{event.actor_type.replace("_", " ")}</span>
            </Row>
            {event.actor_id && (
              <Row name="Actor id">
                <CopyableId id={event.actor_id} label="Copy actor id" />
              </Row>
            )}
            <Row name="Role">{event.role}</Row>
            <Row name="Target">
              {event.target_name ?? "none"} <span className="text-ink-muted">{event.target_type}</span>
            </Row>
            {event.target_id && (
              <Row name="Target id">
                <CopyableId id={event.target_id} label="Copy target id" />
              </Row>
            )}
            {event.org_id && (
              <Row name="Organization id">
                <CopyableId id={event.org_id} label="Copy organization id" />
              </Row>
            )}
            <Row name="Event id">
              <CopyableId id={event.id} label="Copy event id" />
            </Row>
            <Row name="Correlation id">
              <CopyableId id={event.correlation_id} label="Copy correlation id" />
              <Button className="mt-1.5 block" onClick={() => onFollow(event.correlation_id)}>
                Show all with this correlation id
              </Button>
            </Row>
          </dl>
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
      <pre className="overflow-x-auto rounded-md bg-sunken p-3 font-mono text-sm">
        {JSON.stringify(details, null, 2)}
      </pre>
    </>
  );
}

function Row({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="grid gap-x-4 border-b border-line py-2.5 sm:grid-cols-[8.5rem_minmax(0,1fr)]">
      <dt className="text-ink-muted">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </div>
  );
}
